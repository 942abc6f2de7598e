"""Shared by the commands that talk to a running service."""

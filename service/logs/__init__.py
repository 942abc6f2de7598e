"""Logs: lines of JSON, without secrets."""

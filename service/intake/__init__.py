"""Adapters: foreign traces and foreign gold to ours. Pure."""

"""Limits on requests to a provider: how many, when, and whose turn it is."""

"""Detect text in a trace that seems to address whoever judges it."""

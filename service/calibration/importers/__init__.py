"""Labelled sets in the shapes they are published in."""

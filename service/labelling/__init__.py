"""Labelled items: people label them, judges answer them, and both are compared."""

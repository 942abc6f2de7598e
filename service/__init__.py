"""callgrade: scores what language models do with tools."""

__version__ = "0.1.0"

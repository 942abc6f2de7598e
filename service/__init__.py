"""callgrade: scores what language models do with tools."""

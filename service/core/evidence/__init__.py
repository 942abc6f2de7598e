"""Check without a model what can be proved of a trace: quantities in text, origins of arguments, claims of an answer."""

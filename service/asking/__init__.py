"""Get a judgement for each question: from the cache, else from a model, within limits and a budget."""

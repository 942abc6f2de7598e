"""How a question gets its judgement: from the cache, else from a model, within limits and a budget."""

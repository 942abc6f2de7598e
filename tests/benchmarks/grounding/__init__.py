"""How the values of texts are grounded on sets of texts whose truth is known: `python -m tests.benchmarks.grounding`."""

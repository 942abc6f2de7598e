"""The second half of scoring: answers and outcomes become the report."""

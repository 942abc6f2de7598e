"""The second half of scoring: judges' answers and outcomes become the report."""

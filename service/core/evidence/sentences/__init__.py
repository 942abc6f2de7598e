"""Split text into sentences, clauses and table rows, and find the claims and the entities in each."""

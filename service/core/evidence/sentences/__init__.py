"""What a text says: sentences, clauses, table rows, and the entities that each speaks of."""

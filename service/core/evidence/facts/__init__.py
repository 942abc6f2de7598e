"""Read tool results as facts: a value under a field of a record, in its unit. Group these into entities."""

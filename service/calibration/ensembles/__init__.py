"""Several judges together: juries, cascades and, for comparison, stacks."""

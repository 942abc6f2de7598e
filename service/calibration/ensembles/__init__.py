"""Several judges together: juries, cascades and, to compare with, stacks."""

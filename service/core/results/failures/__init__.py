"""Whether a result says that the call failed."""

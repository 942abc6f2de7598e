"""Find results that report that the call failed."""

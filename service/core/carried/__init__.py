"""Published methods as their own code has them, their mistakes included: pure functions on plain data."""

"""Where the arguments of a call come from."""

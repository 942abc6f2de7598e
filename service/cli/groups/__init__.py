"""Groups of commands, one module for each."""

"""Clients of a running service, for programs and for the command line: what it answers as values, what goes wrong as errors."""

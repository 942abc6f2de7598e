"""Pair the calls that an expectation lists with the calls that the trace made."""

"""Trace the arguments of calls back to their sources."""

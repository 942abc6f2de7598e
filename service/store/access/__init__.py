"""Callers, what they may do, and records of it: keys, sessions, usage, the audit log."""

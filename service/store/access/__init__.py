"""Who asks, what they may do, and what is kept of it: keys, sessions, usage, the audit log."""

"""What outlives a process: batches, their chunks and results, keys of callers. SQLite, or PostgreSQL for several machines."""

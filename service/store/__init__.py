"""What outlives a process: batches, their chunks and results, API keys. SQLite, or PostgreSQL for several machines."""

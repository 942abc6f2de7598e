"""The cache of judgements: on disk, or in Redis for several machines."""

"""Start, supervise and end the processes that serve and that work on batches."""

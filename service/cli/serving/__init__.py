"""The processes that serve and that work on batches: started, watched over, ended."""

"""Jobs in the database: batches and calibrations, their chunks, items, results and ends."""

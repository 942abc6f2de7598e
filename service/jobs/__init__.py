"""Batches and calibration runs: submit, queue, run and record them, and send notices when they end."""

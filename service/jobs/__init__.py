"""Batches and calibration runs: submitting, queueing, running, recording, telling of the end."""

"""What may not change when only the code does: reports, digests, names and doors, kept in `tests/data/frozen`."""

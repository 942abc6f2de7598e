"""Seeded statistics: the same numbers always give the same figure. Only `intervals` and `rates` need no numpy."""

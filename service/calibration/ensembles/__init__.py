"""Several judges together: juries and cascades."""

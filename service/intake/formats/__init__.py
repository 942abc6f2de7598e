"""The trace formats. Each is a module named after the format, with its shape, its `read` and its `FORMAT`."""

"""The formats of traces, one module for each: a file named as its format, with its shape, its `read` and its `FORMAT`."""

"""The trace formats. A module holds a family: the functions that read its formats, each decorated with what tells it."""

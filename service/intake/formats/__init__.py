"""The trace formats. A module holds a family: the readers of its formats, and their entries in `FORMATS`."""

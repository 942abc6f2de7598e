"""The fits that decide here: where they are kept, which are in place, and how each has held up since it was made."""

"""The fits that decide here: where they are kept, which is in place, and how each has held since."""

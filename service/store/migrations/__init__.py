"""How the tables came to be what they are: one file for each change, in `versions`, oldest first."""

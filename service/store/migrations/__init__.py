"""The history of the tables: one file per change, in `versions`, oldest first."""

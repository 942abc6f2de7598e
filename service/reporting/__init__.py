"""Many reports together: summaries, comparisons, assertions, and the document they are shown as."""

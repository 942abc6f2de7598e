"""Many reports together: summaries, comparisons, assertions, and documents as Markdown and HTML."""

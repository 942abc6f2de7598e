"""Reports and tables for a terminal, Markdown, JSON and JUnit."""

"""Render reports and tables for a terminal, as Markdown, JSON and JUnit."""

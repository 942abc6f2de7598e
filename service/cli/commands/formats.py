"""List the trace formats."""

from __future__ import annotations

from service.cli.screen import print_table
from service.intake.reading import list_formats


def main() -> None:
    """List the trace formats: what each is, and the fields by which a trace that names no format is recognized."""
    rows = [(entry.name, entry.summary, entry.hint) for entry in list_formats()]
    print_table(("format", "what it is", "recognized by"), rows)

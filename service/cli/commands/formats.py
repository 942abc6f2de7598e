"""`callgrade formats`: list the trace formats."""

from __future__ import annotations

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import print_table


@command(26)
def formats() -> int:
    """List the trace formats: what each is, and the fields by which a trace that names no format is recognized."""
    from service.intake.reading import list_formats

    rows = [(entry.name, entry.summary, entry.hint) for entry in list_formats()]
    print_table(("format", "what it is", "recognized by"), rows)
    return ExitCode.PASSED

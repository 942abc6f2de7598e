"""`callgrade formats`: list the trace formats."""

from __future__ import annotations

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import build_reading_console


@command(26)
def formats() -> int:
    """List the trace formats: what each is, and the fields by which a trace that names no format is recognized."""
    from rich.table import Table

    from service.intake.reading import list_formats

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("format", "what it is", "recognized by"):
        table.add_column(name, overflow="fold")
    for entry in list_formats():
        table.add_row(entry.name, entry.summary, entry.hint)
    build_reading_console().print(table)
    return ExitCode.PASSED

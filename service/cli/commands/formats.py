"""`callgrade formats`: the forms in which traces can be given."""

from __future__ import annotations

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import reading_console


@command(26)
def formats() -> int:
    """List the formats of traces, what each is, and by which members it is told where a trace names none."""
    from rich.table import Table

    from service.intake.reading import list_formats

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("format", "what it is", "told by"):
        table.add_column(name, overflow="fold")
    for entry in list_formats():
        table.add_row(entry.name, entry.summary, entry.hint)
    reading_console().print(table)
    return ExitCode.PASSED

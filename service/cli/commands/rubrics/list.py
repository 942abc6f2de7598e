"""`callgrade rubrics list`: a line for each rubric."""

from __future__ import annotations

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import reading_console
from service.reporting.escaping import escape_unprintable


@command(10)
def list_rubrics() -> int:
    """List the rubrics at hand: the bundled ones and your own."""
    from rich.table import Table
    from rich.text import Text

    from service.wiring import build_engine

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("rubric", "criteria", "title"):
        table.add_column(name, overflow="fold", justify="right" if name == "criteria" else "left")
    for rubric in build_engine(read_settings()).shelf:
        name = Text(f"{rubric.id}@{rubric.version}")
        table.add_row(name, str(len(rubric.criteria)), Text(escape_unprintable(rubric.title)))
    reading_console().print(table)
    return ExitCode.PASSED

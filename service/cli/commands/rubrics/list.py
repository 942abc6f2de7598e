"""`callgrade rubrics list`: a line for each rubric."""

from __future__ import annotations

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import reading_console
from service.reporting.escaping import escape_unprintable


@command(10)
def list_rubrics() -> int:
    """List the rubrics at hand, the bundled ones and your own.

    `asks` is how many questions each asks judges at most: of a call / of a turn / of a trace.
    """
    from rich.table import Table
    from rich.text import Text

    from service.cli.rubric_costs import count_questions
    from service.wiring import build_engine

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("rubric", "criteria", "asks", "title"):
        table.add_column(name, overflow="fold", justify="right" if name == "criteria" else "left")
    for rubric in build_engine(read_settings()).registry:
        asked = count_questions(rubric)[:3]
        told = "/".join(map(str, asked)) if any(asked) else "-"
        name = Text(f"{rubric.id}@{rubric.version}")
        table.add_row(name, str(len(rubric.criteria)), told, Text(escape_unprintable(rubric.title)))
    reading_console().print(table)
    return ExitCode.PASSED

"""`callgrade rubrics list`: list the rubrics."""

from __future__ import annotations

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import build_reading_console
from service.reporting.escaping import escape_unprintable


@command(10)
def list_rubrics() -> int:
    """List the available rubrics, bundled ones and your own.

    The column `asks` is the number of questions that judges are asked at most: per call / per turn / per trace.
    """
    from rich.table import Table
    from rich.text import Text

    from service.cli.rubric_costs import count_questions
    from service.wiring import build_engine

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("rubric", "criteria", "asks", "title"):
        table.add_column(name, overflow="fold", justify="right" if name == "criteria" else "left")
    for rubric in build_engine(read_settings()).registry:
        counts = count_questions(rubric)[:3]
        asks = "/".join(map(str, counts)) if any(counts) else "-"
        name = Text(f"{rubric.id}@{rubric.version}")
        table.add_row(name, str(len(rubric.criteria)), asks, Text(escape_unprintable(rubric.title)))
    build_reading_console().print(table)
    return ExitCode.PASSED

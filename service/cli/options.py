"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def check_format(name: str) -> str:
    """Return `auto` or the name of a trace format as it is; BadParameter for any other."""
    if name != "auto":
        from service.intake import FORMATS  # noqa: PLC0415 (slow to import)

        if name not in FORMATS:
            raise typer.BadParameter(f"{name!r} is not one of auto, {', '.join(FORMATS)}")
    return name


FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="JSON or JSON Lines, also gzipped; - is standard input.")
]
ReportsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="Reports as JSON or JSON Lines, also gzipped; - is standard input."),
]
RubricOption = Annotated[
    str | None,
    typer.Option(
        "--rubric", "-r", metavar="ID|FILE", help="Rubric for all records, overriding their own. [default: four_step]"
    ),
]
ExpectedOption = Annotated[
    Path | None,
    typer.Option(
        "--expected",
        "-e",
        metavar="FILE",
        help="Expectation for all records, overriding their own; JSON or YAML.",
    ),
]
FormatOption = Annotated[
    str,
    typer.Option(
        "--input-format",
        "-i",
        metavar="FORMAT",
        callback=check_format,
        help="Format of traces that do not name one (callgrade formats lists them); auto guesses it and says so.",
    ),
]
PluginOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin", metavar="FILE", help="Python file with checks of your own, added to every rubric; repeatable."
    ),
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write to. [default: standard output]")
]

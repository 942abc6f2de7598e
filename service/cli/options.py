"""Options and arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

InputFormat = Literal["auto", "openai", "openai_responses", "anthropic", "spans", "bfcl", "tau", "callgrade"]
"""`auto`, or a format of a trace; a test holds it to those that intake knows."""

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="JSON or JSON Lines, also gzipped; - is standard input.")
]
Reports = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="Reports as JSON or JSON Lines, also gzipped; - is standard input."),
]
RubricOption = Annotated[
    str | None,
    typer.Option(
        "--rubric", "-r", metavar="ID|FILE", help="Rubric to score with, whatever a record names. [default: four_step]"
    ),
]
ExpectedOption = Annotated[
    Path | None,
    typer.Option(
        "--expected",
        "-e",
        metavar="FILE",
        help="What is expected of every trace, whatever a record says; JSON or YAML.",
    ),
]
FormatOption = Annotated[
    InputFormat,
    typer.Option("--input-format", "-i", help="Format of traces that do not name theirs; auto guesses, and says so."),
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write. [default: standard output]")
]

"""Options and arguments that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer.main import TyperChoice  # pyright: ignore[reportPrivateImportUsage] (typer has no public name for it)

from service.core.models.lazy import lazy


class InputFormat(TyperChoice[str]):
    """`auto`, or a format that intake knows; it is asked when one is read or shown, for it takes its time."""

    def __init__(self) -> None:
        self.case_sensitive = True

    @lazy
    def choices(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride] (worked out late)
        """What may be given."""
        from service.intake import FORMATS  # noqa: PLC0415 (likewise)

        return "auto", *FORMATS


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
    str,
    typer.Option(
        "--input-format",
        "-i",
        click_type=InputFormat(),
        help="Format of traces that do not name theirs; auto guesses, and says so.",
    ),
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write. [default: standard output]")
]

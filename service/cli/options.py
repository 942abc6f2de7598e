"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer.main import TyperChoice  # pyright: ignore[reportPrivateImportUsage] (typer has no public name for it)

from service.core.models.lazy import lazy


class InputFormat(TyperChoice[str]):
    """`auto`, or one of the intake formats. They are looked up only when a format is parsed or shown, because that is slow."""

    def __init__(self) -> None:
        self.case_sensitive = True

    @lazy
    def choices(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride] (worked out late)
        """The accepted values."""
        from service.intake import FORMATS  # noqa: PLC0415 (slow to import)

        return "auto", *FORMATS


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
        click_type=InputFormat(),
        help="Format of traces that do not name one; auto guesses it and says so.",
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

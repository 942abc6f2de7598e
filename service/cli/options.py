"""What commands share: the options of several commands, and the settings that each starts from.

An option is declared once, here; what a command says otherwise is in its own file.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from service.cli.screen import warn
from service.intake.reading import FORMATS
from service.settings import Settings


def read_settings() -> Settings:
    """Read the settings and warn about unknown names, which are most likely misspelt. SettingsError for one that is invalid."""
    settings = Settings.from_env(os.environ)
    for name in settings.unknown:
        warn(f"{name} is not a callgrade setting")
    return settings


@contextmanager
def writing(file: object, option: str) -> Generator[None]:
    """Make an OSError in the block a usage error of the option that names the file to write."""
    try:
        yield
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}", param_hint=option) from None


FORMAT = Option("--format", "-f", help="Output format.")
TableOrJson = Annotated[Literal["table", "json"], FORMAT]


def _check_format(name: str) -> str | None:
    if name != "auto" and name not in FORMATS:
        raise typer.BadParameter(f"{name!r} is not one of auto, {', '.join(FORMATS)}")
    return None if name == "auto" else name


Files = Annotated[list[Path], Argument(metavar="FILE...", help="Files, folders, ZIP archives or URLs; - is stdin.")]
Reports = Annotated[list[Path], Argument(metavar="FILE...", help="Reports as JSON (Lines), also gzipped; - is stdin.")]
Rubric = Annotated[str | None, Option("--rubric", "-r", metavar="ID|FILE", help="Rubric for all. [default: four_step]")]
Expected = Annotated[Path | None, Option("--expected", "-e", metavar="FILE", help="Expectation for all records.")]
Tools = Annotated[
    Path | None, Option(metavar="FILE", help="Tools for traces that name none: a list, MCP's tools/list, or OpenAPI.")
]
InputFormat = Annotated[
    str | None,
    Option(
        "--input-format",
        "-i",
        metavar="FORMAT",
        callback=_check_format,
        help="Format of traces that name none; auto guesses it.",
    ),
]
Encoding = Annotated[
    str | None,
    Option(metavar="NAME", help="Encoding of text without a byte order mark, such as latin-1. [default: utf-8]"),
]
Columns = Annotated[
    str | None,
    Option(metavar="NAME=MEMBER,...", help="Members for columns of a table, as in prompt=question,out=answer."),
]
Rejected = Annotated[Path | None, Option(metavar="FILE", help="File for records that cannot be read or scored.")]
Plugin = Annotated[list[Path] | None, Option("--plugin", metavar="FILE", help="Your own checks or judges; repeatable.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Show no progress.")]
Output = Annotated[Path | None, Option("--output", "-o", metavar="FILE", help="File to write to.")]
RequireCertified = Annotated[
    bool, Option("--require-certified", help="Exit 3 where any judge that decided something has no certified fit.")
]
AllowUndecided = Annotated[bool, Option("--allow-undecided", help="Forgive undecided verdicts that no fault caused.")]


def read_columns(columns: str | None) -> dict[str, str]:
    """Read `--columns`; a usage error if a part names no member."""
    pairs = [part.partition("=") for part in (columns or "").split(",") if part]
    if not all(name and member for name, _, member in pairs):
        raise typer.BadParameter("expected NAME=MEMBER,...", param_hint="--columns")
    return {name.strip(): member.strip() for name, _, member in pairs}

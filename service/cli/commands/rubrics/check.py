"""`callgrade rubrics check`: a line for each file that is fine, a line for each problem of one that is not."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import console
from service.errors import InputError, Problem
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from service.cli.rubric_yaml import YamlLines
    from service.registry import Registry

_SYNTAX = re.compile(r"line (\d+), (column \d+: .*)", re.DOTALL)


@command(40)
def check_rubrics(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Rubrics, in YAML or JSON.")],
) -> int:
    """Check rubric files: every problem with its place, or ok with the rubric's hash."""
    from service.wiring import build_engine

    registry = build_engine(read_settings()).registry
    fine = [_check(file, registry) for file in files]
    return ExitCode.PASSED if all(fine) else ExitCode.CONFIG


def _check(file: Path, registry: Registry) -> bool:
    from service.packaged_files import read_yaml
    from service.registry import read_rubric

    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "cannot be read") if isinstance(error, OSError) else "not UTF-8"
        _tell(file, [Problem("", reason)], "")
        return False
    try:
        rubric = registry.find(read_rubric(read_yaml(text, source="")))
    except InputError as error:
        _tell(file, error.problems, text)
        return False
    said = f"{file}: ok, {rubric.id}@{rubric.version}, {len(rubric.criteria)} criteria, sha256 {rubric.digest}"
    console().print(escape_unprintable(said), soft_wrap=True)
    return True


def _tell(file: Path, problems: Sequence[Problem], text: str) -> None:
    from service.cli.rubric_yaml import YamlLines

    err, lines = console(sys.stderr), YamlLines(text)
    for problem in problems:
        err.print(escape_unprintable(f"error: {file}{_describe_problem(problem, lines)}"), soft_wrap=True)


def _describe_problem(problem: Problem, lines: YamlLines) -> str:
    """The problem with its line before it, where that is known."""
    if found := _SYNTAX.fullmatch(problem.message):
        return f":{found[1]}: {found[2]}"
    path = problem.path.removeprefix("/rubric")
    line = lines.of(path) if path else None
    return "".join([f":{line}" if line else "", f": {path}" if path else "", f": {problem.message}"])

"""`callgrade rubrics check`: print one line per valid file, or one line per problem."""

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
from service.cli.rendering.console import build_console
from service.errors import InputError, Problem
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from service.cli.rubric_yaml import YamlLines
    from service.registry import Registry

_SYNTAX = re.compile(r"line (\d+), (column \d+: .*)", re.DOTALL)


@command(40)
def check_rubrics(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Rubric files, YAML or JSON.")],
) -> int:
    """Check rubric files: print every problem with its place, or ok and the rubric's hash."""
    from service.wiring import build_engine

    registry = build_engine(read_settings()).registry
    valid = [_check(file, registry) for file in files]
    return ExitCode.PASSED if all(valid) else ExitCode.CONFIG


def _check(file: Path, registry: Registry) -> bool:
    from service.packaged_files import read_yaml
    from service.registry import read_rubric

    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "cannot be read") if isinstance(error, OSError) else "not UTF-8"
        _print_problems(file, [Problem("", reason)], "")
        return False
    try:
        rubric = registry.find(read_rubric(read_yaml(text, source="")))
    except InputError as error:
        _print_problems(file, error.problems, text)
        return False
    text = f"{file}: ok, {rubric.id}@{rubric.version}, {len(rubric.criteria)} criteria, sha256 {rubric.digest}"
    build_console().print(escape_unprintable(text), soft_wrap=True)
    return True


def _print_problems(file: Path, problems: Sequence[Problem], text: str) -> None:
    from service.cli.rubric_yaml import YamlLines

    err, lines = build_console(sys.stderr), YamlLines(text)
    for problem in problems:
        err.print(escape_unprintable(f"error: {file}{_describe_problem(problem, lines)}"), soft_wrap=True)


def _describe_problem(problem: Problem, lines: YamlLines) -> str:
    """Describe a problem, preceded by its line if known."""
    if match := _SYNTAX.fullmatch(problem.message):
        return f":{match[1]}: {match[2]}"
    path = problem.path.removeprefix("/rubric")
    line = lines.find_line(path) if path else None
    return "".join([f":{line}" if line else "", f": {path}" if path else "", f": {problem.message}"])

"""`callgrade rubrics`: list, show, check."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, cast

import yaml
from rich.table import Table
from rich.text import Text

from service.cli.console import console, printable, reading_console
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.inputs import find_rubric
from service.core.lazy import lazy
from service.core.pointers import parts_of
from service.core.rubric import Rubric, rubric_schema
from service.errors import InputError, Problem
from service.io.bootstrap import engine_of
from service.io.files import read_yaml
from service.io.shelf import Shelf, read_rubric


def list_rubrics() -> ExitCode:
    """A line for each rubric."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("rubric", "criteria", "title"):
        table.add_column(name, overflow="fold", justify="right" if name == "criteria" else "left")
    for rubric in engine_of(read_settings()).shelf:
        name = Text(f"{rubric.id}@{rubric.version}")
        table.add_row(name, str(len(rubric.criteria)), Text(printable(rubric.title)))
    reading_console().print(table)
    return ExitCode.PASSED


def show_rubric(choice: str, *, output_format: Literal["yaml", "json"] = "yaml") -> ExitCode:
    """The rubric whole: as YAML that reads back to the same rubric, or as the JSON that HTTP gives."""
    rubric = find_rubric(engine_of(read_settings()).shelf, choice)
    text = f"{rubric.model_dump_json()}\n" if output_format == "json" else as_yaml(rubric)
    sys.stdout.write(text)
    return ExitCode.PASSED


def print_schema() -> ExitCode:
    """The JSON Schema of a rubric file, as rubrics/schema.json holds it."""
    sys.stdout.write(json.dumps(rubric_schema(), indent=2, sort_keys=True) + "\n")
    return ExitCode.PASSED


class _Plain(yaml.SafeDumper):
    """YAML without anchors, which rubric files may not have."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def as_yaml(rubric: Rubric) -> str:
    """The rubric as YAML."""
    return yaml.dump(rubric.model_dump(mode="json"), Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110)


def check_rubrics(files: Sequence[Path]) -> ExitCode:
    """A line for each file that is fine, a line for each problem of one that is not."""
    shelf = engine_of(read_settings()).shelf
    fine = [_check(file, shelf) for file in files]
    return ExitCode.PASSED if all(fine) else ExitCode.CONFIG


def _check(file: Path, shelf: Shelf) -> bool:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "cannot be read") if isinstance(error, OSError) else "not UTF-8"
        _tell(file, [Problem("", reason)], "")
        return False
    try:
        rubric = shelf.find(read_rubric(read_yaml(text, source="")))
    except InputError as error:
        _tell(file, error.problems, text)
        return False
    said = f"{file}: ok, {rubric.id}@{rubric.version}, {len(rubric.criteria)} criteria, sha256 {rubric.digest}"
    console().print(printable(said), soft_wrap=True)
    return True


def _tell(file: Path, problems: Sequence[Problem], text: str) -> None:
    err, lines = console(sys.stderr), Lines(text)
    for problem in problems:
        err.print(printable(f"error: {file}{_told(problem, lines)}"), soft_wrap=True)


def _told(problem: Problem, lines: Lines) -> str:
    """The problem with its line before it, where that is known."""
    if found := _SYNTAX.fullmatch(problem.message):
        return f":{found[1]}: {found[2]}"
    path = problem.path.removeprefix("/rubric")
    line = lines.of(path) if path else None
    return "".join([f":{line}" if line else "", f": {path}" if path else "", f": {problem.message}"])


_SYNTAX = re.compile(r"line (\d+), (column \d+: .*)", re.DOTALL)

Members = dict[str, tuple[yaml.Node, int]]
"""What stands at each key or index of a node, and in which line."""


class Lines:
    """The lines of a document, which is read once for all that is asked."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._members: dict[int, Members] = {}

    def of(self, path: str) -> int | None:
        """The line (from 1) of the place a JSON pointer names, or of the last place on the way that is there.

        >>> Lines("id: a\\ncriteria:\\n  - {id: b}\\n").of("/criteria/0/stage")
        3
        """
        try:
            node, parts = self._root, parts_of(path)
        except (yaml.YAMLError, ValueError):
            return None
        line: int | None = None
        for part in parts:
            node, line = self._below(node).get(part, (None, line))
        return line

    @lazy
    def _root(self) -> yaml.Node | None:
        return cast("yaml.Node | None", yaml.compose(self._text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType]

    def _below(self, node: yaml.Node | None) -> Members:
        if id(node) not in self._members:
            self._members[id(node)] = dict(reversed(list(_members(node))))  # of two keys that are the same the first
        return self._members[id(node)]


def _members(node: yaml.Node | None) -> Iterator[tuple[str, tuple[yaml.Node, int]]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key.value, (value, key.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for n, item in enumerate(node.value):
            yield str(n), (item, item.start_mark.line + 1)

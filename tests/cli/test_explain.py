"""`callgrade explain`: every code that a report can have is explained."""

from __future__ import annotations

import ast
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from service.cli.commands.explain import list_explanations
from service.cli.exits import ExitCode
from service.core.outcome import SkipCause
from service.errors import FaultCause
from service.intake.reading import FORMATS
from service.reading.packaged_files import read_explanations
from tests import own_checks
from tests.cli.cli_run import Run

ROOT = Path(__file__).parents[2]
FROZEN = ROOT / "tests" / "data" / "frozen" / "reports.xz"


def iter_codes_in_source() -> Iterator[str]:
    """The codes that stand in a call of Finding, or as the code of a constant of a room."""
    for file in (ROOT / "service").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding" and node.args:
                first = node.args[0]
                yield from [first.value] if isinstance(first, ast.Constant) else []


def is_explained(code: str) -> bool:
    known = read_explanations()["findings"]
    return code in known or any(one.endswith("*") and code.startswith(one[:-1]) for one in known)


def test_every_code_of_a_finding_and_every_cause_is_explained() -> None:
    found = {one.decode() for one in re.findall(rb'\\"code\\":\\"(\w+)\\"', lzma.decompress(FROZEN.read_bytes()))}
    own = {name for name, value in vars(own_checks).items() if hasattr(value, "callgrade_check")} | {"long_name"}
    assert len(found) > 80
    assert [code for code in sorted({*found, *iter_codes_in_source()} - own) if not is_explained(code)] == []
    assert {*get_args(SkipCause), *get_args(FaultCause)} <= read_explanations()["causes"].keys()
    assert [str(one.value) for one in ExitCode] == [*read_explanations()["exit_codes"]]


def test_without_a_name_all_are_listed_and_so_are_all_formats(run: Run) -> None:
    out = run("explain").out
    assert all(one.name.split()[0] in out for one in list_explanations())
    told = run("formats").out
    assert [name for name in FORMATS if name not in told] == []
    assert f"auto, {', '.join(FORMATS)}" in run("score", "a", "--input-format", "xml").err

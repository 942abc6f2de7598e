"""A new kind is one new file: one of each goes into a copy of the service, which scores with it; nothing else is touched.

`tests/data/extension` holds the files. The copy runs in a process of its own, since an interpreter knows one service alone.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import types
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from service.cli.app import LazyCommands, find_places
from service.core.models.kinds import FrozenModel, list_kinds
from tests.core.reports import one_check

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "extension"

CALLING = {"format": "callgrade", "events": [{"user": "Go"}, {"call": {"name": "look", "arguments": {"n": 4}}}]}
LINES = {"lines": ["user: Go", "call: look", "assistant: Done"]}
TOOL_NAME = {"id": "tool", "stage": "select", "check": {"kind": "tool_name"}}


class Kind(NamedTuple):
    """A new file, a request that uses what is in it, and the score that comes of it."""

    file: str
    request: dict[str, Any]
    score: float


KINDS = {
    "critic": Kind("service/core/critics/parity.py", {"rubric": one_check("arguments"), "trace": CALLING,
     "expected": {"calls": [{"tool": "look", "args": {"n": {"kind": "parity", "value": 3}}}]}}, 0.0),
    "gate": Kind("service/core/gates/short_name.py", {"rubric": one_check("short_name", most=3), "trace": CALLING},
     0.0),
    "method": Kind("service/core/methods/half.py", {"rubric": one_check("half"), "trace": CALLING}, 0.5),
    "format": Kind("service/intake/formats/lines.py", {"rubric": {"id": "case", "criteria": [TOOL_NAME]},
     "trace": {"format": "lines", **LINES}, "expected": {"calls": [{"tool": "look"}]}}, 1.0),
    "gold": Kind("service/intake/gold/names.py", {"rubric": {"id": "case", "criteria": [TOOL_NAME]}, "trace": CALLING,
     "expected": {"format": "names", "tools": ["look", "book"]}}, 0.5),
    "judge": Kind("rubrics/judges/brevity.yaml", {"rubric": one_check("judge", judge="brevity"), "trace": CALLING},
     0.0),
    "rubric": Kind("rubrics/names_only.yaml", {"rubric": "names_only", "trace": CALLING,
     "expected": {"calls": [{"tool": "look"}]}}, 1.0),
}  # fmt: skip

SCORE = """
import json, sys
from pathlib import Path
import service
from pydantic import TypeAdapter
from service import conclude, plan
from service.core.judging.prompts import Usage
from service.core.judging.replies import Judgement
from service.core.judging.notes import JudgeReply
from service.intake.reading import FORMATS, TraceInput, guess_format

assert Path(service.__file__).parents[1] == Path.cwd(), service.__file__
answer = JudgeReply(Judgement("long", 0.25, "it goes on", ()), "x/m", "m", "miss", Usage(1, 1, 0.0))
made = {name: plan(request) for name, request in json.load(sys.stdin).items()}
scored = {name: conclude(one, {ask.key: (answer,) for ask in one.asks}) for name, one in made.items()}
shapes = TypeAdapter(TraceInput).json_schema()["$defs"]
found = [guess_format({"lines": ["user: Go"]}), "lines" in FORMATS, "LinesTrace" in shapes]
print(json.dumps([{name: report.score for name, report in scored.items()}, found]))
"""


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the service is made of, with the new files in it."""
    folder = tmp_path_factory.mktemp("extended")
    for part in ("service", "rubrics", "calibration"):
        shutil.copytree(ROOT / part, folder / part)
    for kind in KINDS.values():
        new = folder / kind.file
        assert not new.exists()
        shutil.copy(DATA / new.name, new)
    return folder


def run(program: str, folder: Path, given: object = None) -> Any:
    """What a program prints as JSON, run on the copy."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_new_kind_is_one_new_file(extended: Path) -> None:
    scores, listed = run(SCORE, extended, {name: kind.request for name, kind in KINDS.items()})
    assert scores == {name: kind.score for name, kind in KINDS.items()}
    assert listed == ["lines", True, True]


NAMELESS = {
    "no name": "",
    "a name that is no literal": 'kind: str = "leaf"',
    "a name of no value": 'name: Literal["leaf"] = "leaf"',
}


@pytest.mark.parametrize("line", NAMELESS.values(), ids=NAMELESS)
def test_a_class_that_nothing_finds_is_refused(line: str) -> None:
    base = types.new_class("Base", (FrozenModel,))
    lines = f"class Leaf(Base):\n    'A leaf.'\n    {line}\n"
    exec(lines, {"Base": base, "Literal": Literal, "__name__": __name__})  # noqa: S102
    with pytest.raises(TypeError, match=r"Leaf has no name by which it is found: kind: Literal\["):
        list_kinds(base)


def test_a_command_is_a_new_file_and_one_without_a_command_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some_commands").mkdir()
    own = '"""Say hello."""\ndef main() -> None: ...\n'
    for name, text in {"__init__": "", "rows": "", "hello": own}.items():
        (tmp_path / "some_commands" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    files = LazyCommands(find_places(import_module("some_commands")))
    assert ([*files], files["hello"].name, files.summarize("hello")) == (["hello", "rows"], "hello", "Say hello.")
    with pytest.raises(TypeError, match=r"some_commands\.rows has no main"):
        files["rows"]

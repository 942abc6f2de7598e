"""What a report says where no judge looks: values that no result holds, and judges in Python that are for no criterion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.asking.own_judges import OWN_JUDGES
from tests.cli.cli_run import Run


def invoice(answer: str) -> dict[str, Any]:
    tool = {"name": "get_invoice", "parameters": {"type": "object", "properties": {"id": {"type": "string"}}}}
    call = {"name": "get_invoice", "arguments": {"id": "A-2041"}}
    events = [
        {"user": "What do I owe on A-2041?"},
        {"call": call, "result": {"amount_usd": 184.5}},
        {"assistant": answer},
    ]
    expected = {"calls": [{"tool": "get_invoice", "args": {"id": "A-2041"}}]}
    return {"trace": {"format": "callgrade", "tools": [tool], "events": events}, "expected": expected}


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (
            "You owe $210.00.",
            "the answer has a value that no result holds, and no judge checked it: $210.00 (nearest: 184.5)",
        ),
        ("You owe $184.50.", ""),
        ("You owe $210.00 and $333.00 and $41.00 and $77.00.", "and 1 more"),
    ],
)
def test_values_that_no_result_holds_are_named(run: Run, tmp_path: Path, answer: str, line: str) -> None:
    (tmp_path / "t.json").write_text(json.dumps(invoice(answer)))
    out = " ".join(run("score", "t.json", "--judges", "off").out.split())
    assert ("no result holds" in out) is bool(line)
    assert line in out


@pytest.fixture
def _own_judges() -> Iterator[None]:
    before = dict(OWN_JUDGES)
    yield
    OWN_JUDGES.clear()
    OWN_JUDGES.update(before)


@pytest.mark.usefixtures("_own_judges")
def test_a_judge_for_no_criterion_is_warned_of(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(invoice("You owe $184.50.")))
    (tmp_path / "mine.py").write_text(
        "import callgrade\n@callgrade.judge('result_grounded')\ndef mine(claims):\n    return 'grounded'\n"
    )
    ran = run("score", "t.json", "--plugin", "mine.py", "--judges", "off")
    assert "python/mine answers result_grounded, which is no criterion" in " ".join(ran.err.split())
    assert "did you mean result_groundedness?" in " ".join(ran.err.split())

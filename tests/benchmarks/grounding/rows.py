"""The rows of the sets, each as a request for a score. `tests/data/grounding/README.md` describes the files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from service import score
from service.core.grounding.history import History
from service.core.grounding.origins import Grounded
from service.core.grounding.texts import GroundedText, ground_texts
from service.intake.reading import read_trace

DATA = Path(__file__).parents[2] / "data" / "grounding"
SEEN, HELD_BACK = DATA / "seen", DATA / "held_back"
FILES = ("true", "false", "actions", "lookalikes_actions", "spellings", "lookalikes")


class Row(NamedTuple):
    """A conversation: the file it stands in, whether its last text is right and, of a wrong answer, the right one."""

    id: str
    file: str
    kind: str
    right: bool
    trace: Mapping[str, Any]
    text: str
    instead: str = ""


class Read(NamedTuple):
    """What came of a row: `fail`, `open` or `pass`, and its texts with the origins of their values."""

    row: Row
    verdict: str
    texts: list[GroundedText]

    @property
    def values(self) -> tuple[Grounded, ...]:
        """The values of the last text."""
        return self.texts[-1].values if self.texts else ()

    @property
    def noticed(self) -> bool:
        return self.verdict != "pass"


def read_folder(folder: Path) -> Iterator[Read]:
    """Score all rows of a folder and ground their texts."""
    return (Read(row, ask_verdict(row), read_texts(row)) for row in iter_rows(folder))


def read_texts(row: Row) -> list[GroundedText]:
    """Ground the texts of a row."""
    return ground_texts(History(read_trace(row.trace)))


def ask_verdict(row: Row) -> str:
    """Score a row, judges off, with the calls that were made as the expected ones: only the texts are in question."""
    calls = [event["call"] for event in row.trace["events"] if "call" in event]
    expected = [{"tool": call["name"], "args": call["arguments"]} for call in calls]
    report = score({"trace": row.trace, "judges": "off", "expected": {"calls": expected or "none"}})
    integrate = next(stage.verdict for stage in report.stages if stage.stage == "integrate")
    return "fail" if integrate == "fail" else "pass" if report.verdict == "pass" else "open"


def iter_rows(folder: Path) -> Iterator[Row]:
    """Yield the rows of a folder; a file that is not there has none."""
    fixtures = {one["id"]: one for one in _load(folder, "fixtures")}
    answers = {one["id"]: one["answer"] for one in _load(folder, "true")}
    for file in FILES:
        for one in _load(folder, file):
            tools, events = _read_events(one, fixtures.get(one.get("fixture", ""), one))
            trace = {"format": "callgrade", "tools": tools, "events": events}
            right = one.get("true", file == "true")
            text = next(event["assistant"] for event in reversed(events) if "assistant" in event)
            yield Row(
                one["id"], file, one.get("kind", "answer"), right, trace, text, answers.get(one.get("of", ""), "")
            )


def _load(folder: Path, file: str) -> list[dict[str, Any]]:
    path = folder / f"{file}.jsonl"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def _read_events(one: Mapping[str, Any], fixture: Mapping[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
    if "events" in one:
        return one["tools"], [_with_result(event) for event in one["events"]]
    calls = fixture.get("calls") or [{**one["call"], "result": one["result"]}]
    told = [
        {"call": {"name": call["name"], "arguments": call["arguments"]}, "result": call["result"]} for call in calls
    ]
    offered = fixture.get("tools") or [{"name": calls[0]["name"], "parameters": {"type": "object"}}]
    return offered, [{"user": fixture["user"]}, *map(_with_result, told), {"assistant": one["answer"]}]


def _with_result(event: Mapping[str, Any]) -> dict[str, Any]:
    if "call" not in event or not {"error", "result"} & event.keys():
        return dict(event)
    failed = {"result": event["error"], "is_error": True} if "error" in event else {"result": event["result"]}
    return {"call": event["call"], **failed}


def find_change(text: str, other: str) -> tuple[int, int]:
    """Find the characters of a text that another does not have: all but what both begin and end with."""
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))
    rest, others = text[start:][::-1], other[start:][::-1]
    end = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(rest, others, strict=False)))
    return start, max(len(text) - end, start + 1)

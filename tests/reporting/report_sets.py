"""Sets of reports for the tests of summaries: small traces, scored."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from service import Report, score
from service.reading.packaged_files import read_yaml

DATA = Path(__file__).parents[1] / "data" / "summary"

Table = dict[str, Any]


def table(name: str) -> Table:
    """A table of this theme."""
    return read_yaml((DATA / f"{name}.yaml").read_text("utf-8"), source=name)  # type: ignore[return-value]


def request_of(case: Table, tools: Iterable[str]) -> Table:
    """The score request of a case: the calls it makes, with what it expects."""
    events: list[Table] = [{"user": "Please."}, *({"call": {"name": name, "arguments": {}}} for name in case["calls"])]
    trace = {"format": "callgrade", "id": case["id"], "events": events, "tools": [{"name": name} for name in tools]}
    expected = {"expected": case["expected"]} if "expected" in case else {}
    return {"trace": trace, "tags": case.get("tags", {}), "judges": "off", **expected}


def report_of(case: Table, tools: Iterable[str] = ("lookup", "refund", "void")) -> Report:
    """The report of a case."""
    return score(request_of(case, tools))


def reports_of(name: str = "set") -> list[Report]:
    """The reports of a table's cases."""
    found = table(name)
    return [report_of(case, found["tools"]) for case in found["cases"]]


def trials(task: str, passed: Iterable[bool]) -> list[Report]:
    """A report for each trial of a task."""
    return [
        report_of(
            {
                "id": f"{task}-{n}",
                "expected": {"calls": [{"tool": "refund"}]},
                "calls": ["refund"] if good else [],
                "tags": {"task": task, "trial": str(n)},
            }
        )
        for n, good in enumerate(passed)
    ]

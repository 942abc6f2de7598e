"""Every packaged output of the Berkeley Function-Calling Leaderboard: its own verdict, and four_step's differences by name."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service import Report, score
from service.core.outcome import Outcome, Scored
from tests.bulk import WHOLE, share
from tests.real.bfcl_rules import RULES, Row, request

pytestmark = [pytest.mark.shared_data, pytest.mark.whole]

SHARE = 11
CONTRACT = ("decide", "tool_name", "schema", "arguments")

OUTCOMES = {
    ("decide", "scored"): (7440, 677),
    ("tool_name", "scored"): (10215, 919),
    ("tool_name", "not_applicable"): (933, 86),
    ("tool_name", "blocked"): (855, 88),
    ("schema", "scored"): (9070, 815),
    ("schema", "not_applicable"): (1056, 102),
    ("schema", "blocked"): (545, 48),
    ("arguments", "scored"): (9021, 810),
    ("arguments", "not_applicable"): (1440, 131),
    ("arguments", "blocked"): (1461, 144),
}
"""How many there are in all rows, and in the share."""
DIFFERENCES = {
    "numbers_equal": (28, 2),
    "text_normalised": (22, 3),
    "schema_stricter": (17, 4),
    "undecodable_is_no_call": (10, 2),
    "text_read": (5, 0),
    "marker_is_a_value": (3, 1),
}


def expected(table: dict[Any, tuple[int, int]]) -> dict[Any, int]:
    found = {name: counts[0 if WHOLE else 1] for name, counts in table.items()}
    return {name: count for name, count in found.items() if count}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


@pytest.fixture(scope="module")
def joined(shared_data: Path) -> list[Row]:
    questions = {row["id"]: row for row in _lines(shared_data / "bfcl" / "questions.jsonl.gz")}
    rows = share([*_lines(shared_data / "bfcl" / "rows.jsonl.gz")], one_in=SHARE)
    return [questions[row["id"]] | row for row in rows]


@pytest.fixture(scope="module")
def strict(joined: list[Row]) -> list[tuple[Row, Report]]:
    """Each row with four_step's report."""
    return [(row, score(request(row, "four_step"))) for row in joined]


def outcomes(report: Report) -> Iterator[tuple[str, Outcome]]:
    for criterion in report.criteria:
        yield from ((criterion.id, each.outcome) for each in criterion.outcomes)
    for step in report.steps:
        yield from step.outcomes.items()


def test_the_official_verdict_on_every_row(joined):
    reports = [(row, score(request(row, "bfcl_ast"))) for row in joined]
    wrong = [row["id"] for row, report in reports if (report.verdict == "pass") != row["official"]["valid"]]
    assert (len(reports), wrong) == (7440 if WHOLE else 677, [])
    assert not [each for _, report in reports for _, each in outcomes(report) if each.kind == "errored"]


def test_four_step_scores_every_row(strict):
    found = Counter(
        (name, each.kind if isinstance(each, Scored) else getattr(each, "cause", each.kind))
        for _, report in strict
        for name, each in outcomes(report)
        if name in CONTRACT or each.kind == "errored"
    )
    assert found == expected(OUTCOMES)


def test_every_difference_from_the_leaderboard_has_a_name(strict):
    differing = [(row, report) for row, report in strict if (report.verdict == "pass") != row["official"]["valid"]]
    named = [(row["id"], [rule.__name__ for rule in RULES if rule(row, report)]) for row, report in differing]
    assert [row for row, rules in named if not rules] == []
    assert len(differing) == (73 if WHOLE else 10)
    assert Counter(rule for _, rules in named for rule in rules) == expected(DIFFERENCES)

"""Two runs of the same cases, paired."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service import InputError, Report
from service.reporting.comparison import Difference, MeanChange, compare_reports
from service.stats.intervals import mcnemar, newcombe
from tests.bulk import examples
from tests.reporting.report_sets import report_of


def run(right: str, wrong: str = "", **tags: str) -> list[Report]:
    """A report for each letter: a case in which `refund` is due and is called where the letter is in `right`."""
    return [
        report_of(
            {
                "id": letter,
                "expected": {"calls": [{"tool": "refund"}]},
                "calls": ["refund"] if letter in right else ["void"],
                "tags": tags,
            }
        )
        for letter in right + wrong
    ]


def test_a_table_by_hand() -> None:
    """a and b pass in both, c passes newly, d and e fail newly, f fails in both."""
    found = compare_reports(run("abde", "cf"), run("abc", "def"))
    passed = found.passed
    assert (found.cases, passed.n, passed.improved, passed.worsened) == (6, 6, 1, 2)
    assert (passed.a.value, passed.b.value) == (pytest.approx(4 / 6), pytest.approx(3 / 6))
    assert passed.measured == MeanChange(pytest.approx(-1 / 6), *newcombe(2, 2, 1, 1))
    assert passed.p_value == mcnemar(2, 1) == 1.0
    assert [(one.case, one.kind) for one in found.changes] == [
        ("d", "newly_failing"),
        ("e", "newly_failing"),
        ("c", "newly_passing"),
    ]
    assert (found.changes[0].a.verdict, found.changes[0].b.verdict, found.changes[0].b.first_failing_stage) == (
        "pass",
        "fail",
        "select",
    )
    assert (found.changes[0].now_failing, found.changes[2].now_passing) == (("tool_name",), ("tool_name",))


def test_cases_that_one_run_lacks_count_nowhere() -> None:
    found = compare_reports(run("abz"), run("abyx"))
    assert (found.cases, found.only_a, found.only_b) == (2, ("z",), ("x", "y"))
    assert found.passed.n == 2


def test_trials_are_paired_with_their_like() -> None:
    found = compare_reports(
        [*run("a", trial="1"), *run("", "a", trial="2")], [*run("a", trial="2"), *run("", "a", trial="1")]
    )
    assert [(one.case, one.trial, one.kind) for one in found.changes] == [
        ("a", "1", "newly_failing"),
        ("a", "2", "newly_passing"),
    ]
    assert found.passed.measured is not None
    assert (found.passed.p_value, found.passed.measured.value) == (None, 0.0)


def unnamed(reports: list[Report]) -> list[Report]:
    return [replace(report, trace_id=None) for report in reports]


REFUSED: list[tuple[list[Report], list[Report], str]] = [
    (run("a"), run("b"), "share no case"),
    (run("a"), [*run("a"), *run("a")], "/b/1: the case 'a' appears twice here"),
    (unnamed(run("a")), run("a"), "/a/0/trace_id"),
    (run("a"), [], "no report"),
]


@pytest.mark.parametrize(("a", "b", "why"), REFUSED)
def test_what_cannot_be_paired_is_refused(a: list[Report], b: list[Report], why: str) -> None:
    with pytest.raises(InputError, match=why):
        compare_reports(a, b)


@settings(max_examples=examples(30), deadline=None)
@given(a=st.lists(st.booleans(), min_size=1, max_size=8), data=st.data())
def test_laws(a: list[bool], data: st.DataObject) -> None:
    """The other way round the difference is the opposite; order changes nothing; the interval holds the difference."""
    b = data.draw(st.lists(st.booleans(), min_size=len(a), max_size=len(a)))
    left, right = outcomes(a), outcomes(b)
    found, turned = compare_reports(left, right), compare_reports(right, left)
    for one, other in zip(numbers(found), numbers(turned), strict=True):
        assert one.measured is not None
        assert other.measured is not None
        assert one.measured.value == pytest.approx(-other.measured.value, abs=1e-12)
        assert -1 <= one.measured.low <= one.measured.value <= one.measured.high <= 1
        assert (one.improved, one.worsened) == (other.worsened, other.improved)
    assert compare_reports(data.draw(st.permutations(left)), data.draw(st.permutations(right))) == found


def outcomes(passed: list[bool]) -> list[Report]:
    letters = "abcdefgh"[: len(passed)]
    good = "".join(letter for letter, one in zip(letters, passed, strict=True) if one)
    return run(good, "".join(letter for letter in letters if letter not in good))


def numbers(found: Any) -> list[Difference]:
    return [found.passed, found.score, *found.stages]

"""Summaries: counts against those made by hand, and what holds of any set."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service import InputError, Report
from service.core.outcome import Errored
from service.reporting.summaries import (
    render_json,
    summarize_reports,
)
from service.reporting.summary import SummaryOptions
from service.stats.rates import Estimate
from tests.bulk import examples
from tests.reporting.report_sets import Table, reports_of, table, trials

SET = table("set")
WANT: Table = SET["want"]
REPORTS = reports_of()
SUMMARY = summarize_reports(REPORTS)


def is_rate(found: Estimate, wanted: list[int] | None) -> bool:
    """Whether an estimate is the fraction (None: nothing to estimate), within its interval."""
    if wanted is None:
        return (found.value, found.low, found.high, found.n) == (None, None, None, 0)
    assert found.value == pytest.approx(wanted[0] / wanted[1], abs=1e-12)
    return found.low is not None and found.high is not None and 0 <= found.low <= found.value <= found.high <= 1


def test_verdicts() -> None:
    assert SUMMARY.rates.verdicts == WANT["verdicts"]
    assert SUMMARY.rates.first_failing_stage == WANT["first_failing_stage"]
    assert is_rate(SUMMARY.rates.passed, WANT["passed"])
    assert (SUMMARY.rates.cases, SUMMARY.rates.passed.n) == (8, 7)


@pytest.mark.parametrize("label", ["call", "no_call"])
def test_call_or_no_call(label: str) -> None:
    found, want = getattr(SUMMARY.rates.decide, label), WANT["decide"][label]
    for name, value in want.items():
        assert is_rate(getattr(found, name), value) if isinstance(value, list) else getattr(found, name) == value
    assert is_rate(SUMMARY.rates.decide.accuracy, WANT["accuracy"])


def test_tools() -> None:
    assert [one.name for one in SUMMARY.tools.scores] == list(WANT["tools"])
    for one in SUMMARY.tools.scores:
        want = WANT["tools"][one.name]
        assert [one.due, one.made, one.right] == [want["due"], want["made"], want["right"]]
        assert all(is_rate(getattr(one, name), want[name]) for name in ("precision", "recall", "f1"))
    top, bottom = WANT["macro_f1"]
    assert SUMMARY.tools.macro_f1 == pytest.approx(top / bottom)


def test_confusions() -> None:
    found = [[c.expected, c.called, c.count] for c in SUMMARY.tools.confusions]
    assert found == WANT["confusions"]


def test_warnings() -> None:
    assert [[w.code, list(w.subjects)] for w in SUMMARY.warnings] == WANT["warnings"]


def test_slices() -> None:
    assert [[s.tag, s.value, s.rates.cases] for s in SUMMARY.slices] == [one[:3] for one in WANT["slices"]]
    assert all(is_rate(s.rates.passed, one[3]) for s, one in zip(SUMMARY.slices, WANT["slices"], strict=True))


def test_reports_of_several_rubrics_are_told_apart() -> None:
    other = replace(REPORTS[0], rubric=replace(REPORTS[0].rubric, id="other"))
    found = summarize_reports([*REPORTS, other])
    assert [ref.id for ref in found.rubrics] == ["four_step", "other"]
    assert found.warnings[0].code == "mixed_rubrics"


def test_what_could_not_be_measured_is_no_pass() -> None:
    """A criterion that broke counts among those it applies to, has no score, and lowers coverage."""
    broken = replace(
        REPORTS[0],
        criteria=tuple(
            replace(
                c,
                value=None,
                score_range=(0.0, 1.0),
                full_range=(0.0, 1.0),
                coverage=0.0,
                outcomes=(replace(c.outcomes[0], outcome=Errored("provider", "503")),),
            )
            if c.id == "decide"
            else c
            for c in REPORTS[0].criteria
        ),
    )
    found = next(c for c in summarize_reports([REPORTS[3], broken]).rates.criteria if c.name == "decide")
    assert (found.passed.value, found.passed.n, found.cases, found.coverage) == (1.0, 1, 2, 0.5)
    for rate in (found.passed, found.score):
        assert (rate.value, rate.n, rate.worst, rate.best, rate.open) == (1.0, 1, 0.5, 1.0, 1)


def test_pass_k_by_brute_force() -> None:
    tasks = {"a": [True, True, False, False], "b": [True] * 4, "c": [True, False, False, False, False]}
    reports = [report for task, passed in tasks.items() for report in trials(task, passed)]
    repeats = summarize_reports(reports).repeats
    assert repeats is not None
    assert [(t.task, t.trials, t.successes) for t in repeats.tasks] == [("a", 4, 2), ("b", 4, 4), ("c", 5, 1)]
    assert [one.k for one in repeats.pass_k] == [1, 2, 3, 4]
    for one in repeats.pass_k:
        assert one.rate.value == pytest.approx(brute_force(tasks, one.k))


def brute_force(tasks: dict[str, list[bool]], k: int) -> float:
    """The mean over tasks of the share of k-subsets of trials that all passed, each subset looked at."""
    shares = [[all(subset) for subset in combinations(passed, k)] for passed in tasks.values()]
    return sum(sum(share) / len(share) for share in shares) / len(shares)


def test_pass_k_beyond_the_trials_is_an_error() -> None:
    reports = [*trials("a", [True] * 4), *trials("b", [True] * 3)]
    with pytest.raises(InputError, match=r"/pass_k: pass\^4: the task 'b' has 3 trials"):
        summarize_reports(reports, SummaryOptions(pass_k=[4]))
    with pytest.raises(InputError, match="no case names its task"):
        summarize_reports(REPORTS, SummaryOptions(pass_k=[1]))
    assert summarize_reports(REPORTS).repeats is None


TAMPERED: list[tuple[dict[str, Any], str]] = [
    ({"score": 1.5}, "/reports/0/score"),
    ({"coverage": -0.1}, "/reports/0/coverage"),
    ({"score": float("nan")}, "/reports/0/score"),
]


@pytest.mark.parametrize(("change", "where"), TAMPERED)
def test_numbers_that_no_report_holds_are_refused(change: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError, match=where):
        summarize_reports([replace(REPORTS[0], **change)])


OUTCOMES = st.sampled_from(SET["cases"])
SETS = st.lists(OUTCOMES, min_size=1, max_size=8)
BY_ID: dict[str, Report] = {case["id"]: report for case, report in zip(SET["cases"], REPORTS, strict=True)}


@settings(max_examples=examples(40), deadline=None)
@given(cases=SETS, groups=st.none() | st.integers(1, 3), data=st.data())
def test_laws(cases: list[Table], groups: int | None, data: st.DataObject) -> None:
    """Rates and intervals lie in [0, 1], the interval holds the rate, and the order of reports changes nothing."""
    reports = [
        replace(BY_ID[case["id"]], tags={} if groups is None else {"group": str(n % groups)})
        for n, case in enumerate(cases)
    ]
    found = render_json(
        summarize_reports(reports, assertions=["pass_rate >= 0.5", "tool_name_f1 > 0.5 for at least 50% of cases"])
    )
    assert (
        render_json(
            summarize_reports(
                data.draw(st.permutations(reports)),
                assertions=["pass_rate >= 0.5", "tool_name_f1 > 0.5 for at least 50% of cases"],
            )
        )
        == found
    )
    for one in estimates(json.loads(found)):
        if one["value"] is None:
            assert (one["low"], one["high"], one["n"]) == (None, None, 0)
        else:
            assert 0 <= one["low"] <= one["value"] <= one["high"] <= 1
            assert one["n"] > 0


def estimates(value: Any) -> list[dict[str, Any]]:
    """Every estimate anywhere in the JSON of a summary."""
    if isinstance(value, list):
        return [one for item in value for one in estimates(item)]
    if not isinstance(value, dict):
        return []
    if value.keys() == {"value", "low", "high", "n"}:
        return [value]
    return [one for item in value.values() for one in estimates(item)]

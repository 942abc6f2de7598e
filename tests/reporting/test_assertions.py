"""Assertions, against a set counted by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import service
from service import InputError, Report
from service.core.outcome import Errored
from service.core.report import OpenOutcome
from service.reading.packaged_files import read_yaml
from service.reporting.assertions import judge_assertions, parse_assertion
from service.reporting.summaries import summarize_reports
from service.reporting.summary import AssertionResult, read_samples
from tests.reporting.report_sets import report_of, reports_of, table, trials
from tests.reporting.test_usage import PLAIN, pay
from tests.reporting.test_usage import REPORTS as USAGE_REPORTS

CASES = table("assertions")
REPORTS = reports_of()
SAMPLES = read_samples(REPORTS)


def result_of(assertion: str) -> AssertionResult:
    (found,) = judge_assertions([assertion], SAMPLES).results
    return found


@pytest.mark.parametrize(("text", "value"), CASES["holds"])
def test_holds(text: str, value: list[int]) -> None:
    found = result_of(text)
    assert (found.status, found.message, found.failing, found.first_failing_stage) == ("passed", "", (), None)
    assert found.actual == pytest.approx(value[0] / value[1])


@pytest.mark.parametrize(("text", "value", "first_failing_stage"), CASES["fails"])
def test_fails(text: str, value: list[int], first_failing_stage: str) -> None:
    found = result_of(text)
    assert (found.status, found.first_failing_stage) == ("failed", first_failing_stage)
    assert found.actual == pytest.approx(value[0] / value[1])
    assert found.failing
    assert found.message


@pytest.mark.parametrize("text", CASES["not_measured"])
def test_an_empty_sample_is_an_error_and_fails_the_gate(text: str) -> None:
    gate = judge_assertions(["score >= 0", text], SAMPLES)
    assert (gate.passed, [one.status for one in gate.results]) == (False, ["passed", "error"])
    assert gate.results[1].actual is None


@pytest.mark.parametrize("text", [*CASES["unknown"], *CASES["unreadable"]])
def test_what_cannot_be_read_or_is_unknown_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InputError) as caught:
        judge_assertions(["score >= 0", text], SAMPLES)
    assert [problem.path for problem in caught.value.problems] == ["/assertions/1"]


AS_WRITTEN = """
          - "call_or_no_call_precision.score >= 0.95 for at least 95% of cases"
          - "tool_name_f1.score              >= 0.95 for at least 95% of cases"
          - "argument_validation.score        >= 0.90 for at least 90% of cases"
          - "argument_plausibility.score      >= 0.85 for at least 85% of cases"
          - "result_groundedness.score        >= 0.90 for at least 90% of cases"
"""


def test_the_list_that_is_about_loads_as_it_stands() -> None:
    loaded = cast("list[str]", read_yaml(AS_WRITTEN, source="gate.yaml"))
    read = [parse_assertion(one) for one in loaded]
    assert [(one.name, one.number, one.share) for one in read] == [
        ("call_or_no_call_precision.score", 0.95, 0.95),
        ("tool_name_f1.score", 0.95, 0.95),
        ("argument_validation.score", 0.9, 0.9),
        ("argument_plausibility.score", 0.85, 0.85),
        ("result_groundedness.score", 0.9, 0.9),
    ]
    statuses = [one.status for one in judge_assertions(loaded, read_samples([REPORTS[0]])).results]
    assert statuses == ["passed", "passed", "passed", "error", "error"]


def test_a_gate_that_asserts_nothing_is_refused() -> None:
    with pytest.raises(InputError):
        judge_assertions([], SAMPLES)


def unmeasured(report: Report) -> Report:
    """The report with a groundedness that a provider's fault left open."""
    (first, *_) = (one for one in report.criteria if one.id == "decide")
    left = replace(first.outcomes[0], outcome=Errored("provider", "503"))
    ends = {"score_range": (0.0, 1.0), "full_range": (0.0, 1.0), "coverage": 0.0}
    found = OpenOutcome("result_groundedness", "integrate", None, 1, None, "errored", "provider", "503", decides=True)
    return replace(
        report,
        criteria=(replace(first, id="result_groundedness", value=None, outcomes=(left,), **ends),),
        open=(found,),
    )


def measured(report: Report, value: float) -> Report:
    (first, *_) = (one for one in report.criteria if one.id == "decide")
    ends = {"score_range": (value, value), "full_range": (value, value)}
    return replace(report, criteria=(replace(first, id="result_groundedness", value=value, **ends),))


THIN = report_of({"id": "thin", "calls": ["refund"]})
"""A trace of which next to nothing was measured: nothing is expected, and judges are off."""


def list_reports(name: str) -> list[Report]:
    """A set by its name; `open G O`: G that are measured at 1.0, and O that are not; `silent N`: N that say no usage.

    `unread`: one of the two has a call that was not read.
    """
    kind, *counts = name.split()
    if kind == "open":
        good, unknown = map(int, counts)
        return [*[measured(REPORTS[0], 1.0)] * good, *[unmeasured(REPORTS[0])] * unknown]
    if kind == "silent":
        return [*USAGE_REPORTS, *[PLAIN] * int(counts[0])]
    if kind == "unread":
        called = [{"role": "assistant", "content": "Done", "tool_uses": [{"name": "pay", "input": {}}]}]
        request = {"trace": {"format": "openai", "messages": [{"role": "user", "content": "Pay."}, *called]}}
        return [pay(5), service.score({**request, "judges": "off"})]
    sets = {"thin": [THIN] * 8, "payments": [pay(5, "5")], "trials": trials("a", [True, True, False, False])}
    return sets[kind]


@pytest.mark.parametrize(("name", "text", "status"), CASES["other_sets"])
def test_what_could_not_be_measured_counts_at_both_ends(name: str, text: str, status: str) -> None:
    lost = name.startswith("lost ")
    gate = summarize_reports(list_reports(name.removeprefix("lost ")), assertions=[text], unscored=lost).gate
    assert gate is not None
    assert gate.results[0].status == status
    assert (gate.passed, gate.undecided) == (status == "passed", status == "undecided")
    if name.startswith("silent") and not name.endswith("0"):
        assert gate.results[0].unmeasured == int(name[-1])


def test_a_task_with_an_open_trial_is_one_case() -> None:
    first, *others = trials("a", [True, True, True])
    gate = summarize_reports([replace(first, verdict="undecided"), *others], assertions=["pass^2 >= 0.9"]).gate
    assert gate is not None
    assert (gate.results[0].cases, gate.results[0].unmeasured, gate.results[0].low) == (1, 0, pytest.approx(1 / 3))


@pytest.mark.parametrize(("assertion", "message"), CASES["units"])
def test_a_unit_that_does_not_fit_is_an_error(assertion: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        summarize_reports(USAGE_REPORTS, assertions=[assertion])


def test_a_score_without_its_ranges_is_refused() -> None:
    with pytest.raises(InputError, match="a score comes with its coverage, score_range and full_range"):
        read_samples([replace(REPORTS[0], score_range=None)])


def test_the_step_that_broke_most_often_is_named() -> None:
    """Without n2: r2 and l2 broke at select, r3 at decide, which is before it."""
    without = read_samples([report for report in REPORTS if report.trace_id != "n2"])
    gate = judge_assertions(["score >= 0", "select.pass_rate >= 0.99", "decide.pass_rate >= 0.99"], without)
    assert (gate.passed, gate.first_failing_stage) == (False, "select")
    assert [one.first_failing_stage for one in gate.results] == [None, "select", "decide"]
    assert [one.failing for one in gate.results] == [(), ("l2", "r2", "r3"), ("r3",)]


@given(
    value=st.integers(0, 100),
    bound=st.integers(0, 100),
    op=st.sampled_from([">=", "<=", ">", "<", "==", "!="]),
    per_cent=st.booleans(),
)
def test_bounds_are_those_of_whole_numbers(value: int, bound: int, op: str, per_cent: bool) -> None:
    text = f"score {op} {bound}%" if per_cent else f"score {op} {bound / 100:.2f}"
    exact = {">=": value >= bound, "<=": value <= bound, ">": value > bound, "<": value < bound, "==": value == bound}
    assert parse_assertion(text).holds(value / 100) == exact.get(op, value != bound)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_assertion(text)
    except InputError:
        return
    assert found.name

"""Rates of a summary corrected by labels, beside figures that were worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import conclude, plan
from service.core.report import Report
from service.errors import InputError
from service.reporting.summaries import read_summary_request, summarize_reports
from service.reporting.summary.labelled import MAX_LABEL_NEXT, CorrectedRate, ReportLabel, ToLabel
from service.stats.corrected import infer_from_labels, ppi
from tests.core.test_require_calibration import PLAUSIBLE, body, replies, rubric

SAID = [1, 1, 0, 0, 1, 0, 1, 1]
LABELS = [True, True, False, True]


def report(name: str | None, *values: float) -> Report:
    """A report on a trace with one call for each value that the judge gave."""
    made = body(rubric(PLAUSIBLE, required=False))
    trace = made["trace"] | ({} if name is None else {"id": name})
    call = trace["events"][1]
    trace["events"] = [trace["events"][0], *[call] * len(values), *trace["events"][2:]]
    planned = plan({**made, "trace": trace})
    return conclude(planned, replies(planned, list(values)))


def reports(values: Sequence[float] = SAID) -> list[Report]:
    return [report(f"t{n}", value) for n, value in enumerate(values)]


def tagged(found: Report, group: str) -> Report:
    return replace(found, tags={"group": group})


def label(name: str, passes: bool = True, **more: Any) -> ReportLabel:
    return ReportLabel.model_validate({"trace_id": name, "criterion": "argument_plausibility", "label": passes, **more})


def given_labels(passes: Sequence[bool] = LABELS) -> list[ReportLabel]:
    return [label(f"t{n}", one) for n, one in enumerate(passes)]


def rate_of(found: list[Report], labels: Sequence[ReportLabel]) -> CorrectedRate:
    [one] = summarize_reports(found, labels=labels).corrected
    return one


def test_the_figures() -> None:
    """The variance of all eight values is 15/56, the covariance of the four labelled ones 1/6: the weight is 14/45."""
    found = rate_of(reports(), given_labels())
    assert (found.criterion, found.unit, found.labelled, found.unlabelled, found.unmatched) == (
        "argument_plausibility",
        "report",
        4,
        4,
        0,
    )
    assert found.naive == 5 / 8
    assert found.corrected is not None
    assert found.corrected.trust == pytest.approx(14 / 45)
    assert found.corrected.value == pytest.approx(3 / 4 + 14 / 45 * (3 / 4 - 1 / 2))
    assert found.humans is not None
    # Student's quantile for three degrees of freedom, and the standard error of 4 in 6: one of two pseudo-items passes.
    half = 3.182446305284263 * (4 / 6 * 2 / 6 / 6) ** 0.5
    assert (found.humans.value, found.humans.low, found.humans.high) == pytest.approx((0.75, 4 / 6 - half, 1.0))


def test_a_judge_that_is_always_right_needs_no_labels_for_the_part_it_saw() -> None:
    found = rate_of(reports([1, 0] * 20), given_labels([True, False] * 5))
    assert found.corrected is not None
    assert found.humans is not None
    assert found.corrected.value == pytest.approx(0.5)
    assert found.corrected.high - found.corrected.low < found.humans.high - found.humans.low
    assert found.corrected.trust == pytest.approx(min(1.0, (5 / 18) / ((1 + 10 / 30) * (10 / 39))))


@given(st.permutations(range(8)), st.permutations(range(4)))
def test_the_order_of_reports_and_labels_changes_nothing(one: list[int], other: list[int]) -> None:
    shuffled = rate_of([REPORTS[n] for n in one], [given_labels()[n] for n in other])
    assert shuffled == rate_of(REPORTS, given_labels())


REPORTS = reports()


def test_what_to_label_next_is_without_a_label_and_drawn_by_chance() -> None:
    found = rate_of(reports([1] * 40), given_labels())
    assert len(found.label_next) == MAX_LABEL_NEXT
    assert not {one.trace_id for one in found.label_next} & {"t0", "t1", "t2", "t3"}
    assert [one.trace_id for one in found.label_next] != sorted(one.trace_id for one in found.label_next)


def test_too_few_labels_make_no_interval() -> None:
    one = rate_of(reports(), given_labels([True]))
    assert (one.labelled, one.humans, one.corrected) == (1, None, None)
    every = rate_of(reports([1, 0]), given_labels([True, False]))
    assert (every.unlabelled, every.corrected, every.label_next) == (0, None, ())
    assert every.humans is not None


def test_calls_are_items_of_their_own_where_labels_name_them() -> None:
    found = [report("a", 1, 0), report("b", 1, 1), report("c", 0)]
    labels = [label("a", True, step=0), label("a", False, step=1), label("b", True)]
    steps, whole = sorted(summarize_reports(found, labels=labels).corrected, key=lambda one: one.unit, reverse=True)
    assert (steps.unit, steps.labelled, steps.unlabelled, steps.naive) == ("step", 2, 3, 3 / 5)
    assert set(steps.label_next) == {ToLabel("b", 0), ToLabel("b", 1), ToLabel("c", 0)}
    assert (whole.unit, whole.labelled, whole.unlabelled, whole.naive) == ("report", 1, 2, 1 / 3)


def test_calls_of_one_report_and_reports_of_one_conversation_are_groups() -> None:
    found = [report("a", 1, 0), report("b", 1, 1), report("c", 0), tagged(report("d", 1, 0), "t")]
    steps = [label(name, True, step=at) for name, at in (("a", 0), ("a", 1), ("b", 0), ("d", 1))]
    groups = ["report 0", "report 0", "report 1", "group t"], ["report 2", "report 1", "group t"]
    assert rate_of(found, steps).corrected == ppi([True] * 4, [1, 0, 1, 0], [0, 1, 1], groups)
    wholes = [label("a"), label("d")]
    assert rate_of(found, wholes).corrected == ppi([True] * 2, [0, 0], [0, 1], ([None, "t"], [None, None]))


def test_the_interval_is_that_of_the_groups() -> None:
    values, passes = SAID * 4, (LABELS * 4)[:12]
    groups = [f"g{n // 4}" for n in range(len(values))]
    found = [tagged(one, group) for one, group in zip(reports(values), groups, strict=True)]
    plain, grouped = (rate_of(each, given_labels(passes)) for each in (reports(values), found))
    want = ppi(passes, values[:12], values[12:], (groups[:12], groups[12:]))
    assert grouped.corrected is not None
    assert (grouped.corrected.low, grouped.corrected.high) == pytest.approx((want.low, want.high))
    assert grouped.humans is not None
    assert grouped.humans.low == infer_from_labels(passes, groups[:12]).low
    assert plain.corrected is not None
    assert (grouped.naive, grouped.corrected.trust) == (plain.naive, plain.corrected.trust)
    one_group = rate_of([tagged(one, "g") for one in reports()], given_labels())
    assert (one_group.humans, one_group.corrected, one_group.naive) == (None, None, 5 / 8)


def test_a_report_is_as_good_as_the_worst_of_its_calls() -> None:
    found = rate_of([report("a", 1, 0), report("b", 1, 1), report("c", 1, 1)], [label("a"), label("b")])
    assert found.naive == pytest.approx(2 / 3)
    assert found.corrected == ppi([True, True], [0, 1], [1], ([None, None], [None]))


def test_most_labels_decide_and_of_even_ones_the_first() -> None:
    for said, rate in ((False, True, True), 1.0), ((False, True), 0.0), ((True, False), 1.0):
        humans = rate_of(reports(), [label(name, one) for name in ("t0", "t1") for one in said]).humans
        assert humans is not None
        assert humans.value == rate


def test_labels_that_fit_nothing_are_counted() -> None:
    found = rate_of(reports(), [*given_labels(), label("elsewhere"), label("t9")])
    assert (found.labelled, found.unmatched) == (4, 2)
    strange = rate_of(reports(), [label("t0", criterion="strange")])
    assert (strange.labelled, strange.unmatched, strange.naive) == (0, 1, None)


def test_a_report_without_a_name_counts_and_is_not_to_be_labelled() -> None:
    found = rate_of([*reports(), report(None, 1.0)], given_labels())
    assert found.unlabelled == 5
    assert len(found.label_next) == 4


def test_a_name_that_two_reports_have_is_refused() -> None:
    with pytest.raises(InputError, match="2 reports are of the trace 't0'"):
        summarize_reports([*reports(), report("t0", 1.0)], labels=given_labels())


def test_what_was_not_measured_is_no_item() -> None:
    unasked = plan(body(rubric(PLAUSIBLE, required=False)))
    found = rate_of([*reports(), conclude(unasked, {})], given_labels())
    assert found.unlabelled == 4


def test_a_request_takes_them() -> None:
    labels = [
        {"trace_id": f"t{n}", "criterion": "argument_plausibility", "label": "pass" if one else "fail"}
        for n, one in enumerate(LABELS)
    ]
    assert list(read_summary_request({"labels": labels}).labels) == given_labels()
    with pytest.raises(InputError, match="/labels/0/label"):
        read_summary_request({"labels": [{**labels[0], "label": "maybe"}]})

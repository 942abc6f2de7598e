"""Rates of a summary corrected by labels, beside figures that were worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import conclude, plan, report_json
from service.core.report import Report
from service.errors import InputError
from service.reporting.summaries import read_summary_request, summarize_reports, summarize_request
from service.reporting.summary.labelled import CorrectedRate, ReportLabel
from service.stats.corrected import ppi
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


@given(st.permutations(range(8)), st.permutations(range(4)))
def test_the_order_of_reports_and_labels_changes_nothing(one: list[int], other: list[int]) -> None:
    shuffled = rate_of([REPORTS[n] for n in one], [given_labels()[n] for n in other])
    assert shuffled == rate_of(REPORTS, given_labels())


REPORTS = reports()


def test_calls_of_one_report_and_reports_of_one_conversation_are_groups() -> None:
    found = [report("a", 1, 0), report("b", 1, 1), report("c", 0), tagged(report("d", 1, 0), "t")]
    steps = [label(name, True, step=at) for name, at in (("a", 0), ("a", 1), ("b", 0), ("d", 1))]
    groups = ["report 0", "report 0", "report 1", "group t"], ["report 2", "report 1", "group t"]
    assert rate_of(found, steps).corrected == ppi([True] * 4, [1, 0, 1, 0], [0, 1, 1], groups)
    wholes = [label("a"), label("d")]
    assert rate_of(found, wholes).corrected == ppi([True] * 2, [0, 0], [0, 1], ([None, "t"], [None, None]))


def test_a_report_is_as_good_as_the_worst_of_its_calls() -> None:
    found = rate_of([report("a", 1, 0), report("b", 1, 1), report("c", 1, 1)], [label("a"), label("b")])
    assert found.naive == pytest.approx(2 / 3)
    assert found.corrected == ppi([True, True], [0, 1], [1])


def test_most_labels_decide_and_of_even_ones_the_first() -> None:
    for said, rate in ((False, True, True), 1.0), ((False, True), 0.0), ((True, False), 1.0):
        humans = rate_of(reports(), [label(name, one) for name in ("t0", "t1") for one in said]).humans
        assert humans is not None
        assert humans.value == rate


def test_a_request_takes_them_and_one_without_has_none() -> None:
    told = [json.loads(report_json(one)) for one in reports()]
    given_ = [
        {"trace_id": f"t{n}", "criterion": "argument_plausibility", "label": "pass" if one else "fail"}
        for n, one in enumerate(LABELS)
    ]
    [found] = summarize_request(read_summary_request({"reports": told, "labels": given_})).corrected
    assert found == rate_of(reports(), given_labels())
    assert summarize_request(read_summary_request({"reports": told})).corrected == ()
    with pytest.raises(InputError, match="/labels/0/label"):
        read_summary_request({"reports": told, "labels": [{**given_[0], "label": "maybe"}]})

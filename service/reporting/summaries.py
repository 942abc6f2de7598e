"""Summaries of reports given as JSON: the one path that HTTP, command line and library share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

from pydantic import Field, JsonValue, TypeAdapter

from service.core.models.kinds import FrozenModel, Several
from service.core.models.validation import validate
from service.core.report import Report
from service.reporting.assertions import judge_assertions
from service.reporting.summary import Summary, SummaryOptions, read_samples, summarize
from service.reporting.summary.labelled import ReportLabel, correct_rates
from service.reporting.summary.samples import NO_REPORT

MAX_LABELS = 10_000
"""The most labels in one request."""


class SummaryRequest(FrozenModel):
    """How to summarize the reports of a batch."""

    assertions: Several[str] | None = None
    """What must hold. Absent: the summary has no gate."""
    by: Several[str] | None = Field(default=None, max_length=16)
    """Tags to slice by. Absent: step, tool, difficulty and model, where cases have them."""
    labels: Annotated[Several[ReportLabel], Field(max_length=MAX_LABELS)] = ()
    """Human labels of some of the reports, drawn at random: they correct the pass rates of their criteria."""


@cache
def build_report_adapter() -> TypeAdapter[Report]:
    """Build the adapter that reads reports, when first needed."""
    return TypeAdapter(Report)


def read_summary_request(body: JsonValue) -> SummaryRequest:
    """Read the request from a parsed body; InputError names every problem by its pointer."""
    return validate(TypeAdapter(SummaryRequest), body)


def read_report(value: Any) -> Report:
    """Read a report from parsed JSON. Unknown keys are ignored: a later version may have written them."""
    return validate(build_report_adapter(), value)


def summarize_reports(
    reports: Iterable[Report],
    options: SummaryOptions | None = None,
    assertions: Sequence[str] | None = None,
    labels: Iterable[ReportLabel] = (),
    *,
    unfinished: int = 0,
    unscored: int = 0,
) -> Summary:
    """Summarize reports, with a gate if something is asserted, and with rates corrected by `labels`.

    `unfinished` and `unscored` count the cases that have no report; rates and gates count them as open.

    InputError for no reports, for assertions that cannot be read or that name unknown metrics, for a k of pass^k above a
    task's number of trials, and for a label that could mean two reports.
    """
    samples = read_samples(reports)
    summary = summarize(samples, options, unfinished=unfinished, unscored=unscored)
    cases = [*samples, *[NO_REPORT] * (unfinished + unscored)]
    gate = None if assertions is None else judge_assertions(assertions, cases)
    return replace(summary, gate=gate, corrected=correct_rates(samples, labels))


def read_label(value: JsonValue) -> ReportLabel:
    """Read a label of a report from parsed JSON; InputError names problems by pointer."""
    return validate(TypeAdapter(ReportLabel), value)


_JSON: TypeAdapter[Any] = TypeAdapter(Any)


def render_json(value: object) -> bytes:
    """Render a summary, a comparison or another value of ours as JSON; equal values give the same bytes."""
    return _JSON.dump_json(value)

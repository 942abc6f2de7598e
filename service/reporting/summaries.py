"""Summaries and comparisons of reports that come as JSON: the one path that HTTP, command line and library share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

from pydantic import Field, JsonValue, TypeAdapter

from service.core.models.kinds import FrozenModel, Several
from service.core.models.validation import validate
from service.core.report import Report, RubricRef
from service.core.rubric import Rubric
from service.errors import InputError, Problem
from service.reporting.assertions import AssertionForm, Conditions, GateFile, judge_assertions
from service.reporting.comparison import Comparison, Statistics, compare
from service.reporting.regression import PASSED, RegressionGate, judge_regression, may_abstain
from service.reporting.summary import Summary, SummaryOptions, read_samples, summarize
from service.reporting.summary.labelled import CorrectedRate, LabelPairing, RateEstimate, ReportLabel, pair_labels
from service.reporting.summary.makeup import Targets
from service.reporting.summary.tools import Families
from service.stats import choose_difference, choose_interval, mcnemar
from service.stats.corrected import has_enough_groups, infer_from_labels, ppi

FamiliesOf = Callable[[RubricRef], Families]
"""The families that the rubric of a reference declares; none where it is not at hand."""

MOST_LABELS = 10_000
"""Labels in one request at most."""


class SummaryRequest(FrozenModel):
    """Reports to sum up."""

    reports: Several[dict[str, Any]] = Field(
        json_schema_extra={"minItems": 1, "items": {"$ref": "#/components/schemas/Report"}}
    )
    """Reports, as POST /v1/score gives them. Their tags `task`, `group` and those of `by` are looked at."""
    assertions: Several[AssertionForm] | None = None
    """What must hold. Absent: the summary has no gate."""
    families: dict[str, Several[str]] | None = None
    """Tools that are easily taken for one another, by a name for each family. Absent: those that the reports' rubrics declare."""
    targets: Targets = Targets()
    """What the set should be made of."""
    by: Several[str] | None = Field(default=None, max_length=16)
    """Tags to slice by. Absent: step, tool, difficulty and model, where cases have them."""
    pass_k: Annotated[Several[Annotated[int, Field(ge=1)]], Field(max_length=16)] = ()
    """The k of pass^k over trials of a task (the tag `task`). Absent: all up to the fewest trials, at most 10."""
    labels: Annotated[Several[ReportLabel], Field(max_length=MOST_LABELS)] = ()
    """What humans said of some of the reports, drawn at random: they correct the pass rates of the criteria they are of."""


@cache
def build_report_adapter() -> TypeAdapter[Report]:
    """What reads reports; built when first needed."""
    return TypeAdapter(Report)


def read_summary_request(body: JsonValue) -> SummaryRequest:
    """The request in a parsed body; InputError names every problem by its pointer."""
    return validate(TypeAdapter(SummaryRequest), body)


def read_reports(values: Iterable[object], *, below: str = "/reports") -> tuple[Report, ...]:
    """Reports from parsed JSON; InputError names every place, below `below` and the report's position."""
    reports: list[Report] = []
    problems: list[Problem] = []
    for n, value in enumerate(values):
        try:
            reports.append(read_report(value))
        except InputError as error:
            problems += error.below(f"{below}/{n}").problems
    if problems:
        raise InputError(problems)
    return tuple(reports)


def read_report(value: Any) -> Report:
    """A report from parsed JSON. Keys that it does not know are left alone: a later version may have written them."""
    return validate(build_report_adapter(), value)


def answer_request(request: SummaryRequest, declared: FamiliesOf | None = None) -> Summary:
    """The summary of a request, with a gate where it asserts something. InputError where it cannot be made."""
    reports = read_reports(request.reports)
    wishes = SummaryOptions(
        families=find_families(reports, declared) if request.families is None else request.families,
        targets=request.targets,
        by=request.by,
        pass_k=request.pass_k,
    )
    return summarize_reports(reports, wishes, request.assertions, request.labels)


def summarize_reports(
    reports: Iterable[Report],
    wishes: SummaryOptions | None = None,
    assertions: Sequence[str | Conditions] | None = None,
    labels: Iterable[ReportLabel] = (),
) -> Summary:
    """The summary of reports, with a gate where something is asserted, and rates that `labels` correct.

    InputError for no report, for assertions that cannot be read or name unknown metrics, for a k of pass^k that a task has
    fewer trials than, and for a label that two reports may be meant by.
    """
    samples = read_samples(reports)
    summary = summarize(samples, wishes, interval=choose_interval)
    summary = replace(summary, corrected=tuple([_correct_rates(one) for one in pair_labels(samples, labels)]))
    return summary if assertions is None else replace(summary, gate=judge_assertions(assertions, samples))


def _correct_rates(found: LabelPairing) -> CorrectedRate:
    """The rates of one criterion, as far as there are labels for them."""
    groups = found.groups, found.groups_elsewhere
    humans = infer_from_labels(found.labels, found.groups) if has_enough_groups(found.groups) else None
    both = ppi(found.labels, found.said, found.elsewhere, groups) if has_enough_groups(*groups) else None
    return CorrectedRate(
        criterion=found.criterion,
        unit=found.unit,
        labelled=len(found.labels),
        unlabelled=len(found.elsewhere),
        unmatched=found.unmatched,
        naive=found.naive,
        humans=None if humans is None else RateEstimate(humans.value, humans.low, humans.high),
        corrected=None if both is None else RateEstimate(both.value, both.low, both.high),
        trust=None if both is None else both.trust,
        more_labels=None if both is None else both.more_labels,
        label_next=found.label_next,
    )


def read_label(value: JsonValue) -> ReportLabel:
    """A label of a report from parsed JSON; InputError by its pointers."""
    return validate(TypeAdapter(ReportLabel), value)


def find_families(reports: Iterable[Report], declared: FamiliesOf | None) -> Families:
    """The families that the rubrics of some reports declare."""
    found: dict[str, Sequence[str]] = {}
    for ref in sorted({report.rubric for report in reports}, key=lambda ref: (ref.id, ref.version, ref.hash)):
        found |= dict(declared(ref)) if declared else {}
    return found


def make_families_finder(find: Callable[[str], Rubric]) -> FamiliesOf:
    """The families of the rubrics that `find` gives for `id@version`, where it is the very one that scored."""

    def families(ref: RubricRef) -> Families:
        try:
            rubric = find(f"{ref.id}@{ref.version}")
        except InputError:
            return {}
        return rubric.families if rubric.digest == ref.hash else {}

    return families


def compare_reports(a: Iterable[Report], b: Iterable[Report]) -> Comparison:
    """The comparison of two runs of the same cases. InputError where they cannot be paired."""
    return compare(read_samples(a), read_samples(b), statistics=_STATISTICS)


def judge_reports(
    a: Iterable[Report], b: Iterable[Report], names: Sequence[str] = (), *, allow_abstain: bool = False
) -> RegressionGate:
    """Whether the second of two runs of the same cases has regressed, by `passed` or the numbers of some names.

    `allow_abstain` leaves out cases that abstain and rest on no fault. InputError where the runs cannot be paired.
    """
    return judge_regression(
        read_samples(a),
        read_samples(b),
        _STATISTICS,
        names=names or (PASSED,),
        forgiven=may_abstain if allow_abstain else lambda _: False,
    )


def read_gate(document: JsonValue) -> tuple[str | Conditions, ...]:
    """The assertions of a gate file; InputError where it holds none or has anything else."""
    return validate(TypeAdapter(GateFile), document).assertions


def read_targets(document: JsonValue) -> Targets:
    """The targets of a file; InputError where it holds anything else."""
    return validate(TypeAdapter(Targets), document)


def render_json(value: Summary | Comparison) -> bytes:
    """A summary or comparison as JSON: the same bytes for the same one."""
    return _JSON.dump_json(value)


_JSON: TypeAdapter[Any] = TypeAdapter(Any)
_STATISTICS = Statistics(choose_interval, choose_difference, mcnemar)

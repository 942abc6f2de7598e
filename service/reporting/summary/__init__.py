"""Many reports to rates: each stage and criterion, call or no call, each tool, pass^k, slices, and the set's make-up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum

from service.core.report import Report, RubricRef
from service.core.rubric import STAGES, Stage
from service.core.scores import Verdict
from service.errors import InputError
from service.reporting.summary.calls import CallRates, summarize_calls
from service.reporting.summary.classes import Decisions, summarize_decisions
from service.reporting.summary.gate import Gate
from service.reporting.summary.labelled import CorrectedRate
from service.reporting.summary.layers import Layer, summarize_layers
from service.reporting.summary.makeup import (
    MOST_VALUES,
    Composition,
    SetWarning,
    Targets,
    build_composition,
    find_warnings,
    warn_mixed_rubrics,
    warn_mixed_scopes,
    warn_unread_calls,
    warn_unsliced,
)
from service.reporting.summary.repeats import Repeats, summarize_repeats
from service.reporting.summary.samples import CRITERION, STAGE, Sample, read_sample
from service.reporting.summary.tools import Families, Tools, summarize_tools
from service.reporting.summary.usage import ToolUsage, summarize_usage
from service.stats.rates import CaseBounds, Estimate, IntervalMethod, estimate_with_bounds

BY = ("step", "tool", "difficulty", "model")
"""Tags by which a summary is sliced unasked, where cases have them."""

LONGEST = 1e9
"""No weight of a criterion in a report is larger."""


@dataclass(frozen=True, slots=True)
class Rates:
    """One stage or criterion over the cases that it applies to."""

    name: str
    passed: Estimate
    """The share that passed of those that were decided, and between which ends it lies with those that are open."""
    score: Estimate
    """The mean over the cases that were measured, and between which ends it lies."""
    cases: int
    """How many cases it applies to; those left out (nothing was measured, and nothing asked for) are in no rate."""
    coverage: float | None
    """The share of them that were measured; None where it applies to none."""


@dataclass(frozen=True, slots=True)
class Group:
    """What is told of the whole set and of each slice.

    `passed` has the verdicts pass and warn above those and fail; a case whose verdict is abstain is open.
    """

    cases: int
    verdicts: dict[Verdict, int]
    passed: Estimate
    score: Estimate
    coverage: float | None
    """The mean coverage of the cases to which something applied."""
    broke_at: dict[Stage, int]
    """How many cases broke first at each stage."""
    stages: tuple[Rates, ...]
    criteria: tuple[Rates, ...]
    layers: tuple[Layer, ...]
    decide: Decisions


@dataclass(frozen=True, slots=True)
class Slice:
    """The cases with one value of a tag."""

    tag: str
    value: str
    rates: Group


@dataclass(frozen=True, slots=True)
class Summary:
    """Many reports in one."""

    rubrics: tuple[RubricRef, ...]
    rates: Group
    tools: Tools
    repeats: Repeats | None
    slices: tuple[Slice, ...]
    make_up: Composition
    warnings: tuple[SetWarning, ...]
    gate: Gate | None
    corrected: tuple[CorrectedRate, ...] = ()
    """Where labels were given: the pass rates of their criteria, corrected by them."""
    usage: tuple[ToolUsage, ...] = ()
    """What calls took, by tool; none where no trace says."""
    calls: CallRates | None = None
    """How many calls their runtime refuses, and what came of the others."""


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """How a summary is made, beyond its reports."""

    families: Families = field(default_factory=dict[str, Sequence[str]])
    targets: Targets = field(default_factory=Targets)
    by: Sequence[str] | None = None
    """Tags to slice by; None: `step`, `tool`, `difficulty` and `model` where cases have them."""
    pass_k: Sequence[int] = ()
    """The k of pass^k; none: all up to the fewest trials of a task."""


def read_samples(reports: Iterable[Report]) -> tuple[Sample, ...]:
    """The samples of at least one report; InputError for none, and for numbers that no report holds."""
    found = tuple(read_sample(check_report(report, f"/reports/{n}")) for n, report in enumerate(reports))
    if not found:
        raise InputError.at("/reports", "no report; a summary of nothing says nothing")
    return found


def summarize(samples: Sequence[Sample], wishes: SummaryOptions | None = None, *, interval: IntervalMethod) -> Summary:
    """The summary of at least one sample, without a gate. Pure; the order of samples does not matter.

    InputError for a k of pass^k that a task has fewer trials than.
    """
    wishes = wishes or SummaryOptions()
    refs = {sample.report.rubric for sample in samples}
    made = build_composition(samples, wishes.targets)
    mixed = warn_mixed_rubrics(f"{ref.id}@{ref.version} {ref.hash[:8]}" for ref in refs)
    return Summary(
        rubrics=tuple(sorted(refs, key=lambda ref: (ref.id, ref.version, ref.hash))),
        rates=build_group(samples, interval),
        tools=summarize_tools(samples, wishes.families, interval),
        repeats=summarize_repeats(samples, wishes.pass_k, interval),
        slices=tuple(one for tag in _choose_tags(samples, wishes.by) for one in _build_slices(samples, tag, interval)),
        make_up=made,
        warnings=(
            *mixed,
            *warn_mixed_scopes(samples),
            *warn_unread_calls(samples),
            *warn_unsliced(samples, _choose_tags(samples, wishes.by)),
            *find_warnings(made, wishes.targets),
        ),
        gate=None,
        usage=summarize_usage(samples),
        calls=summarize_calls(samples, interval),
    )


def build_group(samples: Sequence[Sample], interval: IntervalMethod) -> Group:
    """The rates of some samples."""
    verdicts: Counter[Verdict] = Counter(sample.report.verdict for sample in samples)
    broke = Counter(stage for sample in samples if (stage := sample.report.first_failing_stage))
    covered = [sample.values["coverage"] for sample in samples if "coverage" in sample.values]
    return Group(
        cases=len(samples),
        verdicts=dict(sorted(verdicts.items())),
        passed=estimate_with_bounds([_read_passing(s, "score") for s in samples if s.verdict_counts], interval),
        score=_compute_mean(samples, "score", interval),
        coverage=fsum(covered) / len(covered) if covered else None,
        broke_at={stage: broke[stage] for stage in STAGES if broke[stage]},
        stages=tuple(_compute_rates(samples, STAGE, stage, interval) for stage in STAGES),
        criteria=tuple(_compute_rates(samples, CRITERION, name, interval) for name in _list_criteria(samples)),
        layers=summarize_layers(samples, interval),
        decide=summarize_decisions(samples, interval),
    )


def check_report(report: Report, place: str) -> Report:
    """The report, if its numbers are such as reports hold; InputError otherwise."""
    shares = [("/score", report.score), ("/coverage", report.coverage)]
    for n, stage in enumerate(report.stages):
        shares += [(f"/stages/{n}/score", stage.score), (f"/stages/{n}/coverage", stage.coverage)]
    shares += [(f"/criteria/{n}/value", one.value) for n, one in enumerate(report.criteria)]
    for path, value in shares:
        if value is not None and not 0 <= value <= 1:
            raise InputError.at(place + path, f"a number from 0 to 1 is expected, not {value:g}")
    for n, one in enumerate(report.criteria):
        if not 0 <= one.weight <= LONGEST:
            raise InputError.at(f"{place}/criteria/{n}/weight", f"a weight is a number from 0 to {LONGEST:g}")
    return report


def _list_criteria(samples: Sequence[Sample]) -> list[str]:
    """The criteria of all reports, by stage and name."""
    found = {(STAGES.index(one.stage), one.id) for sample in samples for one in sample.report.criteria}
    return list(dict.fromkeys(name for _, name in sorted(found)))


def _compute_rates(samples: Sequence[Sample], prefix: str, name: str, interval: IntervalMethod) -> Rates:
    metric = prefix + name
    applying = [sample for sample in samples if sample.applies(metric)]
    measured = sum(metric in sample.values for sample in applying)
    return Rates(
        name=name,
        passed=estimate_with_bounds(
            [_read_passing(one, metric) for one in applying if not one.is_left_out(metric)], interval
        ),
        score=_compute_mean(applying, metric, interval),
        cases=len(applying),
        coverage=measured / len(applying) if applying else None,
    )


def _read_passing(sample: Sample, metric: str) -> CaseBounds:
    passes = sample.passes(metric)
    if passes is None:
        return CaseBounds(sample.group, 0.0, 1.0, None)
    return CaseBounds(sample.group, passes, passes, passes)


def _compute_mean(samples: Iterable[Sample], metric: str, interval: IntervalMethod) -> Estimate:
    ends = [(s.group, *s.spans[metric], s.values.get(metric)) for s in samples if metric in s.spans]
    return estimate_with_bounds([CaseBounds(group, low, high, value) for group, low, high, value in ends], interval)


def _choose_tags(samples: Sequence[Sample], by: Sequence[str] | None) -> Sequence[str]:
    if by is not None:
        return tuple(dict.fromkeys(by))
    return tuple(tag for tag in BY if any(tag in sample.report.tags for sample in samples))


def _build_slices(samples: Sequence[Sample], tag: str, interval: IntervalMethod) -> Iterable[Slice]:
    found: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if tag in sample.report.tags:
            found[sample.report.tags[tag]].append(sample)
    if len(found) > MOST_VALUES:
        return
    for value, ones in sorted(found.items()):
        yield Slice(tag, value, build_group(ones, interval))

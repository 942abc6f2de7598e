"""Summarize many reports as rates: stages, criteria, call or no call, tools, pass^k, slices, and what limits them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

from service.core.report import Report, RubricRef
from service.core.rubric import STAGES, Stage
from service.core.scores import Range, Verdict
from service.core.weights import MAX_WEIGHT
from service.errors import InputError
from service.reporting.breaks import ABSENT, FAILED, LETTERS, OPEN, PASSED, estimate_passed
from service.reporting.summary.calls import CallRates, ToolUsage, summarize_calls, summarize_usage
from service.reporting.summary.classes import Decisions, Tools, summarize_decisions, summarize_tools
from service.reporting.summary.labelled import CorrectedRate
from service.reporting.summary.repeats import Repeats, summarize_repeats
from service.reporting.summary.samples import CRITERION, NO_REPORT, STAGE, Sample, read_sample
from service.stats.intervals import choose_interval
from service.stats.rates import CaseBounds, Estimate, estimate_with_bounds

DEFAULT_TAGS = ("step", "tool", "difficulty", "model")
"""Tags by which a summary is sliced by default, where cases have them."""


@dataclass(frozen=True, slots=True)
class Rates:
    """One stage or criterion over the cases that it applies to."""

    name: str
    passed: Estimate
    """The share that passed among the decided cases, and its bounds with the open ones included."""
    score: Estimate
    """The mean over the measured cases, and its bounds with the open ones included."""
    cases: int
    """How many cases it applies to; a case where nothing was measured and nothing is open is in no rate."""
    coverage: float | None
    """The share of them that were measured; None where it applies to none."""


@dataclass(frozen=True, slots=True)
class Group:
    """The figures of the whole set, or of a slice.

    `passed` is the share of the verdicts pass and warn among those and fail; a case whose verdict is undecided, or that has no
    report, is open.
    """

    cases: int
    verdicts: dict[Verdict, int]
    passed: Estimate
    score: Estimate
    coverage: float | None
    """The mean coverage of the cases to which something applied."""
    first_failing_stage: dict[Stage, int]
    """How many cases failed first at each stage."""
    stages: tuple[Rates, ...]
    criteria: tuple[Rates, ...]
    decide: Decisions


@dataclass(frozen=True, slots=True)
class Slice:
    """The cases with one value of a tag."""

    tag: str
    value: str
    rates: Group


Status = Literal["passed", "failed", "undecided", "error"]
"""passed: it holds however the open cases turn out. failed: it does not hold however they turn out. undecided: that depends
on the open cases. error: no case measured it, which is never a pass."""


@dataclass(frozen=True, slots=True)
class AssertionResult:
    """One assertion. `actual` is the number over what was measured (None: nothing was), of `cases` cases."""

    assertion: str
    status: Status
    actual: float | None
    cases: int
    """Cases that count, the open ones included."""
    unmeasured: int
    """Cases of which nothing was measured."""
    first_failing_stage: Stage | None
    """The stage that failed most often among the cases that speak against it."""
    failing: tuple[str, ...]
    """Ids of the cases that speak against it: the first twenty."""
    message: str
    low: float | None = None
    """The number with everything open at worst; this must hold for the assertion to pass."""
    high: float | None = None
    """The same at best; no number in JSON if what is unknown has no bound, as a cost."""

    @property
    def failed_at(self) -> str:
        """Where it failed, in words; empty if it did not, or at no stage."""
        stage = self.first_failing_stage if self.status == "failed" else None
        return f"failed at {stage}" if stage else ""


@dataclass(frozen=True, slots=True)
class Gate:
    """All assertions. It passes when all do, fails when one failed or no case measured it, and is otherwise undecided."""

    passed: bool
    first_failing_stage: Stage | None
    """The step of the first assertion that failed."""
    results: tuple[AssertionResult, ...]
    undecided: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of many reports."""

    rubrics: tuple[RubricRef, ...]
    unfinished: int
    """Items of a batch that have no outcome: they are not finished, or the batch ended before them."""
    unscored: int
    """Records and items that could not be scored."""
    rates: Group
    tools: Tools
    repeats: Repeats | None
    slices: tuple[Slice, ...]
    warnings: tuple[SetWarning, ...]
    gate: Gate | None
    corrected: tuple[CorrectedRate, ...] = ()
    """Where labels were given: the pass rates of their criteria, corrected by them."""
    usage: tuple[ToolUsage, ...] = ()
    """What calls took, by tool; empty where no trace says."""
    calls: CallRates | None = None
    """How many calls their runtime refuses, and how the others did."""


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """How to summarize, besides the reports themselves."""

    by: Sequence[str] | None = None
    """Tags to slice by; None: `step`, `tool`, `difficulty` and `model` where cases have them."""
    pass_k: Sequence[int] = ()
    """The k of pass^k; empty: all up to the fewest trials of a task."""


def read_samples(reports: Iterable[Report]) -> tuple[Sample, ...]:
    """Read the samples of one or more reports; InputError for none, and for numbers that no report can hold."""
    samples = tuple(read_sample(check_report(report, f"/reports/{n}")) for n, report in enumerate(reports))
    if not samples:
        raise InputError.at("/reports", "no report; a summary of nothing says nothing")
    return samples


def summarize(
    samples: Sequence[Sample], options: SummaryOptions | None = None, *, unfinished: int = 0, unscored: int = 0
) -> Summary:
    """Summarize one or more samples, without a gate. Pure; the order of samples does not matter.

    InputError for a k of pass^k above a task's number of trials.
    """
    options = options or SummaryOptions()
    refs = sorted({sample.report.rubric for sample in samples}, key=lambda ref: (ref.id, ref.version, ref.hash))
    found = {tag for sample in samples for tag in sample.report.tags}
    tags = [tag for tag in DEFAULT_TAGS if tag in found] if options.by is None else list(dict.fromkeys(options.by))
    rubrics = [f"{ref.id}@{ref.version} {ref.hash[:8]}" for ref in refs]
    return Summary(
        rubrics=tuple(refs),
        unfinished=unfinished,
        unscored=unscored,
        rates=_build_group(samples, without_report=unfinished + unscored),
        tools=summarize_tools(samples),
        repeats=summarize_repeats(samples, options.pass_k),
        slices=tuple([one for tag in tags for one in _build_slices(samples, tag)]),
        warnings=tuple(find_warnings(samples, rubrics, tags)),
        gate=None,
        usage=summarize_usage(samples),
        calls=summarize_calls(samples),
    )


def _build_group(samples: Sequence[Sample], *, without_report: int = 0) -> Group:
    parts = [(sample.group or "", LETTERS.get(sample.report.verdict, ABSENT), 1) for sample in samples]
    verdicts: Counter[Verdict] = Counter(sample.report.verdict for sample in samples)
    broke = Counter(stage for sample in samples if (stage := sample.report.first_failing_stage))
    covered = [sample.report.coverage for sample in samples if sample.report.coverage is not None]
    found = {(STAGES.index(one.stage), one.id) for sample in samples for one in sample.report.criteria}
    criteria = dict.fromkeys([name for _, name in sorted(found)])
    return Group(
        cases=len(samples),
        verdicts=dict(sorted(verdicts.items())),
        passed=estimate_passed([*parts, ("", OPEN, without_report)]),
        score=_compute_mean([*samples, *[NO_REPORT] * without_report], "score"),
        coverage=fsum(covered) / len(covered) if covered else None,
        first_failing_stage={stage: broke[stage] for stage in STAGES if broke[stage]},
        stages=tuple([_compute_rates(samples, STAGE, stage) for stage in STAGES]),
        criteria=tuple([_compute_rates(samples, CRITERION, name) for name in criteria]),
        decide=summarize_decisions(samples),
    )


def check_report(report: Report, place: str) -> Report:
    """Return the report if its numbers are complete and in range; InputError otherwise."""
    stages = [(f"{place}/stages/{n}", one) for n, one in enumerate(report.stages)]
    criteria = [(f"{place}/criteria/{n}", one) for n, one in enumerate(report.criteria)]
    for path, part in ((place, report), *stages, *criteria):
        names = ("score", "value", "coverage", "score_range", "full_range")
        found: dict[str, float | Range | None] = {name: getattr(part, name, None) for name in names}
        for name, value in found.items():
            for number in value if isinstance(value, tuple) else (value,):
                if number is not None and not 0 <= number <= 1:
                    raise InputError.at(f"{path}/{name}", f"a number from 0 to 1 is expected, not {number:g}")
        measured = found["score"] is not None or found["value"] is not None
        if (measured and part.score_range is None) or (part.coverage is None) != (part.full_range is None):
            raise InputError.at(path, "a score comes with its coverage, score_range and full_range")
    for path, one in criteria:
        if not 0 <= one.weight <= MAX_WEIGHT:
            raise InputError.at(f"{path}/weight", f"a weight is a number from 0 to {MAX_WEIGHT:g}")
    return report


def _compute_rates(samples: Sequence[Sample], prefix: str, name: str) -> Rates:
    metric = prefix + name
    applying = [(sample, reading) for sample in samples if (reading := sample.read(metric))]
    measured = sum(reading.value is not None for _, reading in applying)
    letters: dict[bool | None, str] = {True: PASSED, False: FAILED, None: OPEN}
    passes = [(one.group or "", letters[one.passes(metric)], 1) for one, _ in applying if not one.is_left_out(metric)]
    return Rates(
        name=name,
        passed=estimate_passed(passes),
        score=_compute_mean([sample for sample, _ in applying], metric),
        cases=len(applying),
        coverage=measured / len(applying) if applying else None,
    )


def _compute_mean(samples: Iterable[Sample], metric: str) -> Estimate:
    readings = [(sample.group, reading) for sample in samples if (reading := sample.read(metric))]
    bounds = [CaseBounds(group, *one.bounds, one.value) for group, one in readings if one.bounds is not None]
    return estimate_with_bounds(bounds, choose_interval)


def _build_slices(samples: Sequence[Sample], tag: str) -> Iterable[Slice]:
    by_value: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if tag in sample.report.tags:
            by_value[sample.report.tags[tag]].append(sample)
    if len(by_value) > MAX_TAG_VALUES:
        return
    for value, members in sorted(by_value.items()):
        yield Slice(tag, value, _build_group(members))


MAX_TAG_VALUES = 200
"""A tag with more values is a name, not a slice."""
MIN_NO_CALL_SHARE = 0.1
"""With no call due in a smaller share of cases, over-calling can hardly show."""
MIN_CASES = 5
"""The fewest cases of a slice."""
MAX_NAMED = 20
"""How many slices a message names."""

WarningCode = Literal[
    "few_no_call",
    "few_cases",
    "mixed_rubrics",
    "mixed_scopes",
    "uncalibrated",
    "unread_calls",
    "unknown_tag",
    "too_many_values",
]


@dataclass(frozen=True, slots=True)
class SetWarning:
    """Something about the set that limits what its rates can show. `subjects`: the tags or slices that it is about."""

    code: WarningCode
    message: str
    subjects: tuple[str, ...] = ()


def find_warnings(samples: Sequence[Sample], rubrics: Sequence[str], tags: Iterable[str]) -> Iterator[SetWarning]:
    """Yield a warning for whatever limits what rates can show: what is mixed or unread, how it is tagged, what is too rare."""
    code = sum(sample.report.scope == "code" for sample in samples)
    full = sum(sample.report.scope == "full" and sample.report.provenance.judges != "off" for sample in samples)
    unread = sum(not sample.calls_are_known for sample in samples)
    if len(rubrics) > 1:
        yield SetWarning("mixed_rubrics", f"the reports are of several rubrics: {', '.join(rubrics)}")
    if code and full:
        message = f"{code} reports look at what code decides alone, {full} at all of the rubric"
        yield SetWarning("mixed_scopes", message)
    if unread:
        message = f"{unread} reports have calls that could not be read; no rate of tools or of decisions counts them"
        yield SetWarning("unread_calls", message)
    yield from _find_uncalibrated(samples)
    for tag in tags:
        values = Counter([one.report.tags[tag] for one in samples if tag in one.report.tags])
        few = [f"{tag}={value}" for value, count in sorted(values.items()) if count < MIN_CASES]
        if not values:
            yield SetWarning("unknown_tag", f"no case has a tag {tag}", (tag,))
        elif len(values) > MAX_TAG_VALUES:
            message = f"{tag} has {len(values)} values; with more than {MAX_TAG_VALUES} there are no slices by a tag"
            yield SetWarning("too_many_values", message, (tag,))
        elif few:
            more = f" and {len(few) - MAX_NAMED} more" if len(few) > MAX_NAMED else ""
            message = f"slices of fewer than {MIN_CASES} cases: {', '.join(few[:MAX_NAMED])}{more}"
            yield SetWarning("few_cases", message, tuple(few))
    deciding = [sample.report.decisions for sample in samples if sample.report.decisions]
    share = sum(any(one.expected == "no_call" for one in decisions) for decisions in deciding) / max(1, len(deciding))
    if deciding and share < MIN_NO_CALL_SHARE:
        message = f"{share:.1%} of expectations are of no call; over-calling shows only if {MIN_NO_CALL_SHARE:.0%} do"
        yield SetWarning("few_no_call", message)


def _find_uncalibrated(samples: Iterable[Sample]) -> Iterator[SetWarning]:
    counts = [sample.report.calibration for sample in samples]
    uncalibrated, calibrated = sum(one.uncalibrated for one in counts), sum(one.calibrated for one in counts)
    if uncalibrated:
        of = f"{uncalibrated} of {uncalibrated + calibrated} judged outcomes are uncalibrated"
        yield SetWarning("uncalibrated", f"{of}: no fit says how far their judge agrees with people")

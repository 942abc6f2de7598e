"""Whether a second run of the same cases is worse: the gate on a pull request.

What code fails in the second run has regressed if it did not fail in the first, in whichever case. For repeated trials and
for what judges say, statistics decide: a number has regressed where the 95 % interval of its paired difference lies below 0
even at best, with everything open counted against the first run and for the second. It is within noise where the interval does
not lie below 0 at worst, counted the other way round; otherwise it is undecided. A case that the second run lacks, or in which
nothing applies any longer, counts as open there. Where nothing changed, the chance of a false alarm is 2.5 % per number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from service.core.judging.judged_outcomes import JudgedScore, MixedScore
from service.core.outcome import Outcome, Scored
from service.core.report import OpenOutcome, Report
from service.core.rubric import STAGES
from service.errors import SettingsError
from service.reporting.comparison import (
    PASSED,
    TRIAL,
    Difference,
    Pairs,
    RegressionStatus,
    compute_difference,
    index_by_key,
    list_rubrics,
)
from service.reporting.statements import PASSING, find_state, render_finding
from service.reporting.summary.samples import CRITERION, STAGE, Sample, list_outcomes

WHOLE_TRACE = (PASSED, "score")
"""The numbers that all criteria are part of."""


@dataclass(frozen=True, slots=True)
class ProvedRegression:
    """What code fails only in the second run (`regressed`), or had passed and is open there (`undecided`)."""

    case: str
    criterion: str
    """Empty for the case as a whole."""
    status: Literal["regressed", "undecided"]
    why: str


@dataclass(frozen=True, slots=True)
class RegressionGate:
    """All gated numbers and criteria: regressed where one is, else undecided where one is."""

    status: RegressionStatus
    numbers: tuple[Difference, ...]
    proved: tuple[ProvedRegression, ...] = ()
    reason: str = ""
    """Why it is undecided regardless of the numbers."""
    forgiven: int = 0
    """How many cases were left out of the numbers, as `allow_undecided` asks."""


def judge_reports(
    a: Iterable[Report], b: Iterable[Report], names: Sequence[str] = (), *, allow_undecided: bool = False
) -> RegressionGate:
    """Judge whether the second of two runs has regressed, paired as in `compare_reports`. Pure.

    `names`: `passed` (the default), `score`, stages and criteria. `allow_undecided` leaves cases that are undecided for reasons
    other than a fault out of the intervals, and forgives what is open in them. What code fails there has regressed all the same,
    and a case that is missing, or in which nothing is left to check, is undecided all the same.
    InputError for a name that no case has, and as in `compare_reports`.
    """
    names = tuple(dict.fromkeys(names)) or (PASSED,)
    left, right = index_by_key(a, "/a"), index_by_key(b, "/b")
    pairs = [(sample, right.get(key)) for key, sample in sorted(left.items(), key=lambda one: str(one[0]))]

    def is_forgiven(pair: tuple[Sample, Sample | None]) -> bool:
        return allow_undecided and any(one is not None and may_be_undecided(one.report) for one in pair)

    forgiven = [pair for pair in pairs if is_forgiven(pair)]
    decided = [pair for pair in pairs if not is_forgiven(pair)]
    known = {criterion.id for sample in left.values() for criterion in sample.report.criteria}
    gated = names if decided or not forgiven else ()
    numbers = tuple([compute_difference(name, _find_metric(name, known), decided) for name in gated])
    either = [*_list_proved(decided, names), *_list_proved(forgiven, names, forgiven=True)]
    proved = tuple(sorted(either, key=lambda one: one.status))
    statuses = {one.status for one in (*numbers, *proved)}
    if "regressed" in statuses:
        return RegressionGate("regressed", numbers, proved, forgiven=len(forgiven))
    reason = ""
    if list_rubrics(left.values()) != list_rubrics(right.values()):
        reason = "the two runs were scored with different rubrics"
    elif any(one.report.provenance.replies and other and other.report.scope == "code" for one, other in pairs):
        reason = "judges were asked in the first run, and off in the second"
    status = "undecided" if reason or "undecided" in statuses else "within noise"
    return RegressionGate(status, numbers, proved, reason, len(forgiven))


def _find_metric(name: str, criteria: set[str]) -> str:
    if name in WHOLE_TRACE:
        return name
    if name not in criteria and name not in STAGES:
        known = ", ".join([*WHOLE_TRACE, *STAGES, *sorted(criteria)])
        raise SettingsError.at("--on", f"{name!r} is in no report; expected one of {known}")
    return (STAGE if name in STAGES else CRITERION) + name


def _list_proved(pairs: Pairs, names: Sequence[str], *, forgiven: bool = False) -> Iterator[ProvedRegression]:
    """List proved regressions of the gated numbers; not for repeated trials, nor for pairs scored with different rubrics.

    A criterion that code fails now has regressed if it passed before, or if the case did not fail and neither did the criterion:
    in a case that failed, later stages may not have been reached. What only a judge fails is left to statistics. What code passed
    and is now open, or in a case that is missing, might have failed: that is undecided.
    """
    for one, other in pairs:
        if TRIAL in one.report.tags or (other is not None and other.report.rubric != one.report.rubric):
            continue
        case, before = one.report.trace_id or "", _list_gated(one.report, names)
        passed = {name for name in before if one.passes(CRITERION + name)}
        by_code = {name for name in passed if not any(isinstance(o, JudgedScore | MixedScore) for o in before[name])}
        if other is None or not other.is_applicable:
            why = "missing in the second run" if other is None else "nothing applies to it in the second run"
            yield from [ProvedRegression(case, "", "undecided", why)] if by_code else []
            continue
        now = _list_gated(other.report, names)
        failed = {name: outcomes for name in now if (outcomes := _list_failed(now[name]))}
        proved = {name: [o for o in outcomes if not _is_failed_by_judge(o)] for name, outcomes in failed.items()}
        old = {name for name in before if _list_failed(before[name])}
        may_be_new = passed if one.report.verdict == "fail" else now.keys() - old
        new = [name for name in proved if proved[name] and name in may_be_new]
        for name in new:
            why = "".join([f": {render_finding(found)}" for found in proved[name][0].findings[:1]])
            was = "passed before" if name in passed else "did not fail before"
            yield ProvedRegression(case, name, "regressed", f"{was} and fails now{why}")
        for name in (name for name in before if name in by_code and name not in new):
            reasons = [found.reason for found in other.report.open if found.criterion == name]
            is_checked = any(find_state(outcome) != "absent" for outcome in now.get(name, ()))
            if reasons and not forgiven:
                yield ProvedRegression(case, name, "undecided", f"passed before and is open now: {reasons[0]}")
            elif not (reasons or failed or is_checked) and other.report.verdict not in PASSING:
                yield ProvedRegression(case, name, "undecided", "passed before, and now there is nothing to check")
        broke = "passed" in names and one.passed and other.report.verdict == "fail"
        if broke and not new and not any(map(_is_failed_by_judge, chain.from_iterable(failed.values()))):
            yield ProvedRegression(case, "", "regressed", "passed before and fails now")


def _list_gated(report: Report, names: Sequence[str]) -> dict[str, list[Outcome]]:
    """List the outcomes of each criterion that the gated numbers are about."""
    gated = [one for one in report.criteria if not {one.id, one.stage, *WHOLE_TRACE}.isdisjoint(names)]
    return {one.id: list_outcomes(one, report) for one in gated}


def _list_failed(outcomes: Iterable[Outcome]) -> list[Scored]:
    return [one for one in outcomes if isinstance(one, Scored) and not one.passed]


def _is_failed_by_judge(outcome: Outcome) -> bool:
    return isinstance(outcome, JudgedScore) or (isinstance(outcome, MixedScore) and outcome.code_passed)


def is_unforgiven(one: OpenOutcome) -> bool:
    """Whether an undecided verdict must not be let pass: something failed or could not be read, and may hide a failure."""
    return one.decides and (one.kind == "errored" or one.cause in ("unread", "too_long", "uncalibrated"))


def may_be_undecided(report: Report) -> bool:
    """Whether a report is undecided for reasons other than a fault."""
    return report.verdict == "undecided" and not any(map(is_unforgiven, report.open))

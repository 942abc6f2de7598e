"""Whether a second run of the same cases is worse: the gate on a pull request.

What code passed in the first run and fails in the second has regressed, in whichever case (`proved_regressions`). For repeated
trials and for what judges say, statistics decide: a number has regressed where the 95 % interval of its paired difference lies
below 0 even at best, with everything open counted against the first run and for the second. It holds where the interval does not
lie below 0 at worst, counted the other way round; otherwise it is undecided. A case that the second run lacks, or in which
nothing applies any longer, counts as open there.
Where nothing changed, the chance of a false alarm is 2.5 % per number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

from service.core.report import OpenOutcome, Report
from service.core.rubric import STAGES
from service.errors import InputError
from service.reporting.comparison import (
    MetricReader,
    Statistics,
    build_metric_reader,
    find_group,
    index_by_key,
    list_rubrics,
    read_passed,
)
from service.reporting.proved_regressions import ProvedRegression, list_proved_regressions
from service.reporting.summary.samples import CRITERION, STAGE, Sample
from service.stats.rates import Interval, PairedCase

RegressionStatus = Literal["held", "regressed", "undecided"]

DEFAULT_NUMBER = "passed"
"""The number that is gated by default: the share of cases that pass."""


@dataclass(frozen=True, slots=True)
class NumberChange:
    """One number: b - a at best and at worst, depending on what is open, each with its interval."""

    name: str
    status: RegressionStatus
    best: float
    best_interval: Interval
    worst: float
    worst_interval: Interval
    cases: int
    open: int
    """Cases that are open in one of the two runs, or that the second lacks."""


@dataclass(frozen=True, slots=True)
class RegressionGate:
    """All gated numbers and criteria: regressed where one is, else undecided where one is."""

    status: RegressionStatus
    numbers: tuple[NumberChange, ...]
    proved: tuple[ProvedRegression, ...] = ()
    reason: str = ""
    """Why it is undecided regardless of the numbers."""


def judge_regression(
    a: Iterable[Sample],
    b: Iterable[Sample],
    statistics: Statistics,
    *,
    names: Sequence[str] = (DEFAULT_NUMBER,),
    forgiven: Callable[[Report], bool] = lambda _: False,
) -> RegressionGate:
    """Judge two runs, paired as in `compare`. Pure.

    `names`: `passed`, `score`, stages and criteria. `forgiven` says whether a report's undecided verdict is allowed; such a case
    is left out. InputError for a name that no case has, and as in `compare`.
    """
    left, right = index_by_key(a, "/a"), index_by_key(b, "/b")
    pairs = [(sample, right.get(key)) for key, sample in sorted(left.items(), key=lambda one: str(one[0]))]
    kept = [pair for pair in pairs if not any(one is not None and forgiven(one.report) for one in pair)]
    known = {criterion.id for sample in left.values() for criterion in sample.report.criteria}
    numbers = tuple(_judge_number(name, kept, _find_reader(name, known), statistics) for name in dict.fromkeys(names))
    proved = tuple(sorted(list_proved_regressions(kept, names), key=lambda one: one.status))
    statuses = {one.status for one in (*numbers, *proved)}
    if "regressed" in statuses:
        return RegressionGate("regressed", numbers, proved)
    if list_rubrics(left.values()) != list_rubrics(right.values()):
        return RegressionGate("undecided", numbers, proved, "the two runs were scored with different rubrics")
    if any(one.report.provenance.replies and other and other.report.scope == "code" for one, other in kept):
        return RegressionGate("undecided", numbers, proved, "judges were asked in the first run, and off in the second")
    return RegressionGate("undecided" if "undecided" in statuses else "held", numbers, proved)


def _find_reader(name: str, criteria: set[str]) -> MetricReader:
    if name == DEFAULT_NUMBER:
        return read_passed
    if name == "score":
        return build_metric_reader(name)
    if name not in criteria and name not in STAGES:
        known = ", ".join([DEFAULT_NUMBER, "score", *STAGES, *sorted(criteria)])
        raise InputError.at("", f"no number {name!r} to compare; expected one of {known}")
    return build_metric_reader((STAGE if name in STAGES else CRITERION) + name)


Pairs = Sequence[tuple[Sample, Sample | None]]


def _judge_number(name: str, pairs: Pairs, read: MetricReader, statistics: Statistics) -> NumberChange:
    bounds = list(_iter_bounds(pairs, read))
    if not bounds:
        return NumberChange(name, "undecided", 0.0, (-1.0, 1.0), 0.0, (-1.0, 1.0), 0, 0)
    at_best = [best for best, _ in bounds]
    at_worst = [worst for _, worst in bounds]
    best, worst = statistics.difference(at_best), statistics.difference(at_worst)
    status: RegressionStatus = "regressed" if best[1] < 0 else "undecided" if worst[1] < 0 else "held"
    return NumberChange(
        name,
        status,
        _average(at_best),
        best,
        _average(at_worst),
        worst,
        len(bounds),
        sum(one != other for one, other in bounds),
    )


def _iter_bounds(pairs: Pairs, read: MetricReader) -> Iterator[tuple[PairedCase, PairedCase]]:
    """Yield each pair at best and at worst, leaving out pairs to which the number does not apply."""
    for one, other in pairs:
        is_open = other is None or (one.is_applicable and not other.is_applicable)
        x, y = read(one), (None, 0.0, 1.0) if is_open else read(other or one)
        if x is not None and y is not None:
            group = find_group(one, other or one)
            yield PairedCase(group, x[1], y[2]), PairedCase(group, x[2], y[1])


def _average(pairs: Sequence[PairedCase]) -> float:
    return fsum(pair.b - pair.a for pair in pairs) / len(pairs)


def is_unforgiven(one: OpenOutcome) -> bool:
    """Whether an undecided verdict must not be let pass: something failed or could not be read, and may hide a failure."""
    return one.decides and (one.kind == "errored" or one.cause in ("unread", "too_long", "uncalibrated"))


def may_be_undecided(report: Report) -> bool:
    """Whether a report is undecided for reasons other than a fault."""
    return report.verdict == "undecided" and not any(map(is_unforgiven, report.open))

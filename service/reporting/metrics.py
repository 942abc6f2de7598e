"""The metrics that an assertion may name.

On a case (`X.score`, `X.pass_rate`, `X.p90_score`, ...), X is a name in `DERIVED`, a stage or a criterion. A stage takes
precedence over a criterion of the same name; `criterion.X` and `stage.X` say which is meant. On the whole set: the names in
`SET_METRICS`, and what cases or calls took where traces say so, as `p95 duration of get_order`, `total cost`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from math import fsum, inf
from types import MappingProxyType
from typing import NamedTuple

from service.core.call_decisions import CallClass
from service.core.rubric import STAGES
from service.errors import InputError
from service.reporting.summary.calls import estimate_calls
from service.reporting.summary.classes import MEASURES, count_decisions, list_decision_parts
from service.reporting.summary.repeats import TASK, compute_pass_rate, list_tasks
from service.reporting.summary.samples import CRITERION, DERIVED, STAGE, Sample
from service.stats.rates import RatePart, compute_percentile, compute_ratio

Samples = Sequence[Sample]


class MeasuredNumber(NamedTuple):
    """A number of a set: over what was measured, and its bounds with what is open at worst and at best.

    `value` None: nothing was measured; `low` None: there is no number, and `why` says why. `cases` counts those it is over,
    the open ones included; `unmeasured` those of which nothing was measured.
    """

    value: float | None
    low: float | None
    high: float | None
    cases: int
    unmeasured: int = 0
    why: str = "no case measured it"
    unit: str = "case"
    """What `cases` counts."""
    measured: int = 0
    """How many `value` is over."""


class SetMetric(NamedTuple):
    """A number over a set. `of_case` is the case metric that it is about; None: the verdict."""

    of_case: str | None
    over: Callable[[Samples], MeasuredNumber]


NOT_MEASURED = MeasuredNumber(None, None, None, 0)


def find_metric(name: str, samples: Samples) -> SetMetric:
    """Find the metric of the set by name, as `pass_rate`, `decide.call.recall`, `tool_name_f1.score`, `select.p10_score`.

    `X` alone and `X.score` are the mean of X. InputError for an unknown name.
    """
    if name in SET_METRICS:
        return SetMetric("call_or_no_call_precision" if name.startswith("decide.") else None, SET_METRICS[name])
    if usage := parse_usage_metric(name):
        return SetMetric(None, partial(_fold_usage, metric=usage))
    if found := _PASS_K.fullmatch(name):
        return SetMetric(None, partial(_compute_pass_k, k=int(found[1])))
    base, _, last = name.rpartition(".")
    if last == "pass_rate":
        key = find_case_metric(base or "score", samples, whole=name)
        return SetMetric(key, partial(_fold_verdicts, key=key))
    percentile = _PERCENTILE.fullmatch(last)
    fold = partial(compute_percentile, q=float(percentile[1])) if percentile else FOLDS.get(last)
    key = find_case_metric((base if fold else name) or "score", samples, whole=name)
    return SetMetric(key, partial(_fold_values, key=key, fold=fold or _compute_mean))


def find_case_metric(name: str, samples: Samples, *, whole: str = "") -> str:
    """Find the key of a case's metric in `Sample.readings`. InputError for a name that neither a report nor a table has."""
    base = name.removesuffix(".score")
    criteria = {one.id for sample in samples for one in sample.report.criteria}
    if base in DERIVED or base.removeprefix(STAGE) in STAGES:
        return base if base in DERIVED else STAGE + base.removeprefix(STAGE)
    if base.removeprefix(CRITERION) in criteria:
        return CRITERION + base.removeprefix(CRITERION)
    known = sorted({*DERIVED, *STAGES, *criteria, *SET_METRICS, *FOLDS, "pass_rate"})
    close = get_close_matches(base, known, n=3) or known
    hint = "did you mean {}?" if len(close) <= 3 else "known: {}"
    raise InputError.at("", f"no metric {whole or name}; {hint.format(', '.join(close))}")


def _fold_values(samples: Samples, key: str, fold: Callable[[list[float]], float]) -> MeasuredNumber:
    """Fold the values by `fold`, a non-decreasing function; no number where more cases were left out than not."""
    readings = [reading for sample in samples if (reading := sample.read(key))]
    values = [reading.value for reading in readings if reading.value is not None]
    bounds = [reading.bounds for reading in readings if reading.bounds is not None]
    unmeasured, left_out = len(readings) - len(values), len(readings) - len(bounds)
    if len(bounds) < max(1, left_out):
        return _explain_too_few(len(bounds), unmeasured, left_out)
    low, high = (fold([pair[end] for pair in bounds]) for end in (0, 1))
    value = fold(values) if values else None
    return MeasuredNumber(value, low, high, len(bounds), unmeasured, measured=len(values))


def _fold_verdicts(samples: Samples, key: str) -> MeasuredNumber:
    """Compute the share of cases that passed, of those that the metric applies to; open ones may go either way."""
    applying = [sample for sample in samples if (sample.is_applicable if key == "score" else sample.read(key))]
    known = [sample.passes(key) for sample in applying if not sample.is_left_out(key)]
    unmeasured = sum((reading := sample.read(key)) is not None and reading.value is None for sample in applying)
    if not known:
        return _explain_too_few(0, unmeasured, unmeasured)._replace(cases=len(applying))
    passed, decided = known.count(True), len(known) - known.count(None)
    worst, best = passed / len(known), (passed + known.count(None)) / len(known)
    value = passed / decided if decided else None
    return MeasuredNumber(value, worst, best, len(known), unmeasured, measured=decided)


def _explain_too_few(measured: int, unmeasured: int, left_out: int) -> MeasuredNumber:
    if not left_out:
        return NOT_MEASURED
    why = f"only {measured} of the {measured + left_out} cases that it applies to could be measured"
    return MeasuredNumber(None, None, None, measured, unmeasured, why)


def _compute_mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


FOLDS: Mapping[str, Callable[[Sequence[float]], float]] = MappingProxyType(
    {"score": _compute_mean, "avg_score": _compute_mean, "min_score": min, "max_score": max}
)
"""The folds of the cases' values by name, besides `pass_rate` and `pN_score`, the N-th percentile. Alone they are about the
score and verdict of whole cases; after a metric and a dot, about that metric."""

_PERCENTILE = re.compile(r"p(\d{1,2}|100)_score")
_PASS_K = re.compile(r"pass\^([1-9]\d{0,3})")


def _compute_pass_k(samples: Samples, k: int) -> MeasuredNumber:
    tasks = list_tasks(samples)
    if not tasks:
        return NOT_MEASURED._replace(why=f"no case names its task by a tag {TASK}")
    fewest = min(tasks, key=lambda task: task.trials)
    if fewest.trials < k:
        return NOT_MEASURED._replace(cases=len(tasks), why=f"the task {fewest.task} has only {fewest.trials} trials")
    one = compute_pass_rate(tasks, k)
    found = MeasuredNumber(one.value, one.worst, one.best, len(tasks), len(tasks) - one.n, measured=one.n)
    # A case without a report may be a trial of any task.
    return _open_where_unknown(found, sum(one.is_lost for one in samples))


def _measure_calls(samples: Samples, rate: str) -> MeasuredNumber:
    one = estimate_calls(samples, rate)
    found = NOT_MEASURED._replace(why="no call measured it")
    if one.worst is not None:
        found = MeasuredNumber(one.value, one.worst, one.best, one.n + one.open, one.open, measured=one.n)
    return _open_where_unknown(found, _count_unknown(samples))._replace(unit="call")


def _count_unknown(samples: Samples) -> int:
    """Count the cases whose calls are not all known: some could not be read, or there is no report."""
    return sum(not one.calls_are_known for one in samples)


def _open_where_unknown(found: MeasuredNumber, unknown: int, *, most: float = 1.0) -> MeasuredNumber:
    """Let a number be anything from 0 to `most` where cases hold what nobody knows, each counted as one."""
    if not unknown:
        return found
    return found._replace(low=0.0, high=most, cases=found.cases + unknown, unmeasured=found.unmeasured + unknown)


def _measure_decisions(samples: Samples, list_parts: Callable[[Samples], Iterable[RatePart]]) -> MeasuredNumber:
    """Measure the cases whose every call could be read."""
    parts = [part for part in list_parts([one for one in samples if one.calls_are_known]) if part.size > 0]
    value = compute_ratio(parts) if parts else None
    found = MeasuredNumber(value, value, value, len(parts), measured=len(parts))
    return _open_where_unknown(found, _count_unknown(samples))


def _measure_class(samples: Samples, label: CallClass, measure: str) -> MeasuredNumber:
    return _measure_decisions(samples, lambda known: map(MEASURES[measure], count_decisions(known, label)))


_CLASSES: tuple[CallClass, ...] = ("call", "no_call")

SET_METRICS: Mapping[str, Callable[[Samples], MeasuredNumber]] = MappingProxyType(
    {
        "decide.accuracy": partial(_measure_decisions, list_parts=list_decision_parts),
        **{
            f"decide.{label}.{measure}": partial(_measure_class, label=label, measure=measure)
            for label in _CLASSES
            for measure in MEASURES
        },
        "calls.refused_rate": partial(_measure_calls, rate="refused"),
        "calls.executed_pass_rate": partial(_measure_calls, rate="executed"),
        "calls.pass_rate": partial(_measure_calls, rate="attempted"),
    }
)
"""Metrics that only a whole set has."""


# What calls and cases took.


class UsageQuantity(NamedTuple):
    """What a call or case takes: its name in `ResourceUsage`, and the units that it may be written in, in those of reports."""

    name: str
    units: Mapping[str, float]


_QUANTITIES = {
    "duration": UsageQuantity("duration_s", {"ms": 0.001, "s": 1.0, "min": 60.0}),
    "cost": UsageQuantity("cost_usd", {"": 1.0, "usd": 1.0, "$": 1.0, "cents": 0.01}),
    "input tokens": UsageQuantity("input_tokens", {"": 1.0}),
    "output tokens": UsageQuantity("output_tokens", {"": 1.0}),
}
_PERCENTILES = {"median": 50.0, "min": 0.0, "max": 100.0}
_USAGE = re.compile(
    r"(?P<fold>p\d{1,2}|p100|median|mean|average|avg|min|max|total)\s+"
    r"(?P<quantity>duration|cost|input tokens|output tokens)(?:\s+of\s+(?P<tool>\S.*))?",
    re.IGNORECASE,
)


class UsageMetric(NamedTuple):
    """A number over what cases took or, where `tool` is named, over what calls of that tool took."""

    fold: str
    quantity: str
    tool: str | None

    @property
    def units(self) -> Mapping[str, float]:
        """The units that the number may be written in."""
        return _QUANTITIES[self.quantity].units

    def compute(self, values: Sequence[float]) -> float:
        """Compute the number over one or more values."""
        if self.fold == "total":
            return fsum(values)
        if self.fold in ("mean", "average", "avg"):
            return _compute_mean(values)
        named = _PERCENTILES.get(self.fold)
        return compute_percentile(values, float(self.fold[1:]) if named is None else named)

    def list_values(self, samples: Iterable[Sample]) -> list[float | None]:
        """List the quantity of each case, or of each call of the tool; None where its trace does not say."""
        if self.tool is None:
            usages = [sample.report.usage for sample in samples]
        else:
            usages = [step.usage for sample in samples for step in sample.report.steps if step.tool == self.tool]
        return [usage and getattr(usage, _QUANTITIES[self.quantity].name) for usage in usages]


def parse_usage_metric(name: str) -> UsageMetric | None:
    """Parse the name of a usage metric; None for any other name.

    >>> parse_usage_metric("p95 duration of get_order"), parse_usage_metric("pass_rate")
    (UsageMetric(fold='p95', quantity='duration', tool='get_order'), None)
    """
    found = _USAGE.fullmatch(name)
    return found and UsageMetric(found["fold"].lower(), found["quantity"].lower(), found["tool"])


def _fold_usage(samples: Samples, metric: UsageMetric) -> MeasuredNumber:
    """Fold what cases or calls took; those that do not say may have taken anything. No number where they are the majority."""
    values = metric.list_values(samples)
    known = [value for value in values if value is not None]
    left_out = len(values) - len(known)
    if len(known) < max(1, left_out):
        what = "cases" if metric.tool is None else f"calls of {metric.tool}"
        why = f"only {len(known)} of {len(values)} {what} say their {metric.quantity}"
        return MeasuredNumber(None, None, None, len(known), left_out, why)
    low, high = (metric.compute([*known, *[end] * left_out]) for end in (0.0, inf))
    found = MeasuredNumber(metric.compute(known), low, high, len(values), left_out, measured=len(known))
    if metric.tool is None:
        return found
    return _open_where_unknown(found, _count_unknown(samples), most=inf)._replace(unit="call")

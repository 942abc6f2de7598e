"""The metrics that an assertion may name.

On a case (`X.score`, `X.pass_rate`, `X.p90_score`, ...), X is a name in `DERIVED`, a stage or a criterion. A stage takes
precedence over a criterion of the same name; `criterion.X` and `stage.X` say which is meant. On the whole set: the names in
`SET_METRICS`, and what cases or calls took where traces say so, as `p95_duration_s`, `total_cost_usd`,
`tool.get_order.p50_duration_s`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from math import fsum, inf
from types import MappingProxyType
from typing import NamedTuple, Protocol

from service.core.call_decisions import CallClass
from service.core.rubric import STAGES
from service.errors import InputError
from service.reporting.summary.calls import CallReader, list_call_bounds, read_executed, read_pass, read_refused
from service.reporting.summary.classes import ClassTally, list_decision_parts
from service.reporting.summary.repeats import TASK, compute_pass_rate, list_tasks
from service.reporting.summary.samples import CRITERION, DERIVED, STAGE, Sample
from service.reporting.summary.usage import UsageMetric, parse_usage_metric
from service.stats.rates import RatePart, compute_percentile, compute_ratio, estimate_with_bounds

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
        return SetMetric(_SUBJECTS.get(name), SET_METRICS[name])
    if usage := parse_usage_metric(name):
        return SetMetric(None, partial(_fold_usage, metric=usage))
    if found := _PASS_K.fullmatch(name):
        return SetMetric(None, partial(_compute_pass_k, k=int(found[1])))
    base, _, last = name.rpartition(".")
    fold = _find_fold(last)
    if fold is None:
        base, fold = name, _compute_mean
    key = find_case_metric(base, samples, whole=name) if base else "score"
    return SetMetric(key, partial(fold, key=key))


def find_case_metric(name: str, samples: Samples, *, whole: str = "") -> str:
    """Find the key of a case's metric in `Sample.values`. InputError for a name that neither a report nor a table has."""
    base = name.removesuffix(".score")
    criteria = {one.id for sample in samples for one in sample.report.criteria}
    if base in DERIVED or base.removeprefix(STAGE) in STAGES:
        return base if base in DERIVED else STAGE + base.removeprefix(STAGE)
    if base.removeprefix(CRITERION) in criteria:
        return CRITERION + base.removeprefix(CRITERION)
    known = sorted({*DERIVED, *STAGES, *criteria, *SET_METRICS, *FOLDS})
    close = get_close_matches(base, known, n=3) or known
    raise InputError.at(
        "", f"no metric {whole or name}; {'near it' if len(close) <= 3 else 'known'}: {', '.join(close)}"
    )


def _fold_values(samples: Samples, key: str, fold: Callable[[list[float]], float]) -> MeasuredNumber:
    """Fold the values by `fold`, a non-decreasing function; no number where more cases were left out than not."""
    known = [sample for sample in samples if key in sample.bounds]
    values = [sample.values[key] for sample in known if key in sample.values]
    left_out = sum(sample.is_left_out(key) for sample in samples)
    unmeasured = len(known) - len(values) + left_out
    if len(known) < max(1, left_out):
        return MeasuredNumber(None, None, None, len(known), unmeasured, _explain_too_few(len(known), left_out))
    low, high = (fold([sample.bounds[key][end] for sample in known]) for end in (0, 1))
    return MeasuredNumber(fold(values) if values else None, low, high, len(known), unmeasured)


def _fold_verdicts(samples: Samples, key: str, fold: Callable[[list[bool]], float]) -> MeasuredNumber:
    """Fold whether each case that the metric applies to passed; open ones may go either way."""
    applying = [sample for sample in samples if (sample.is_applicable if key == "score" else sample.applies(key))]
    known = [sample.passes(key) for sample in applying if not sample.is_left_out(key)]
    unmeasured = sum(key in sample.unmeasured for sample in applying)
    if not known:
        return MeasuredNumber(None, None, None, len(applying), unmeasured, _explain_too_few(0, unmeasured))
    decided = [passes for passes in known if passes is not None]
    ends = [fold([end if passes is None else passes for passes in known]) for end in (False, True)]
    return MeasuredNumber(fold(decided) if decided else None, min(ends), max(ends), len(known), unmeasured)


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
    return MeasuredNumber(metric.compute(known), low, high, len(values), left_out)


def _explain_too_few(measured: int, unmeasured: int) -> str:
    if not unmeasured:
        return NOT_MEASURED.why
    return f"only {measured} of the {measured + unmeasured} cases that it applies to could be measured"


def _compute_mean(samples: Samples, key: str) -> MeasuredNumber:
    return _fold_values(samples, key, lambda values: fsum(values) / len(values))


def _compute_percentile(samples: Samples, key: str, q: float) -> MeasuredNumber:
    return _fold_values(samples, key, lambda values: compute_percentile(values, q))


def _compute_pass_rate(samples: Samples, key: str) -> MeasuredNumber:
    return _fold_verdicts(samples, key, lambda passed: sum(passed) / len(passed))


class SetFold(Protocol):
    """Folds the values of cases into one number."""

    def __call__(self, samples: Samples, key: str) -> MeasuredNumber:
        """Return the number over the metric of that key."""
        ...


FOLDS: Mapping[str, SetFold] = MappingProxyType(
    {
        "score": _compute_mean,
        "avg_score": _compute_mean,
        "min_score": lambda samples, key: _fold_values(samples, key, min),
        "max_score": lambda samples, key: _fold_values(samples, key, max),
        "pass_rate": _compute_pass_rate,
        "total_pass_rate": _compute_pass_rate,
        "passed_count": lambda samples, key: _fold_verdicts(samples, key, sum),
        "failed_count": lambda samples, key: _fold_verdicts(samples, key, lambda passed: passed.count(False)),
        "total_count": lambda samples, key: _fold_verdicts(samples, key, len),
    }
)
"""The folds of the cases' values by name, besides `pN_score`, the N-th percentile. Alone they are about the score and verdict
of whole cases; after a metric and a dot, about that metric."""

_PERCENTILE = re.compile(r"p(\d{1,2}|100)_score")
_PASS_K = re.compile(r"pass\^([1-9]\d{0,3})")


def _find_fold(name: str) -> SetFold | None:
    if found := _PERCENTILE.fullmatch(name):
        return partial(_compute_percentile, q=float(found[1]))
    return FOLDS.get(name)


def _compute_share(parts: Sequence[RatePart]) -> MeasuredNumber:
    counted = [part for part in parts if part.size > 0]
    return _build_exact(compute_ratio(counted), len(counted)) if counted else NOT_MEASURED


def _build_exact(value: float, cases: int) -> MeasuredNumber:
    return MeasuredNumber(value, value, value, cases)


def _compute_pass_k(samples: Samples, k: int) -> MeasuredNumber:
    tasks = list_tasks(samples)
    if not tasks:
        return NOT_MEASURED._replace(why=f"no case names its task by a tag {TASK}")
    fewest = min(tasks, key=lambda task: task.trials)
    if fewest.trials < k:
        return NOT_MEASURED._replace(cases=len(tasks), why=f"the task {fewest.task} has only {fewest.trials} trials")
    rate = compute_pass_rate(tasks, k, lambda _: (0.0, 1.0))
    return MeasuredNumber(rate.value, rate.worst, rate.best, len(tasks), rate.open)


def _measure_known(samples: Samples, measure: Callable[[Samples], MeasuredNumber]) -> MeasuredNumber:
    """Measure the cases whose every call could be read; with unread ones beside them, the number may be anything."""
    known = [one for one in samples if one.calls_are_known]
    measured, unknown = measure(known), len(samples) - len(known)
    return (
        measured._replace(low=0.0, high=1.0, cases=measured.cases + unknown, unmeasured=unknown)
        if unknown
        else measured
    )


def _make_class_fold(label: CallClass, measure: str) -> Callable[[Samples], MeasuredNumber]:
    return lambda samples: _measure_known(
        samples, lambda known: _compute_share(ClassTally(known, label).list_parts(measure))
    )


def _measure_calls(samples: Samples, read: CallReader) -> MeasuredNumber:
    estimate = estimate_with_bounds(list_call_bounds(samples, read), lambda _: (0.0, 1.0))
    if estimate.worst is None:
        return NOT_MEASURED._replace(why="no call measured it")
    return MeasuredNumber(estimate.value, estimate.worst, estimate.best, estimate.n + estimate.open, estimate.open)


_CLASSES: tuple[CallClass, ...] = ("call", "no_call")

SET_METRICS: Mapping[str, Callable[[Samples], MeasuredNumber]] = MappingProxyType(
    {
        "decide.accuracy": lambda samples: _measure_known(
            samples, lambda known: _compute_share(list_decision_parts(known))
        ),
        **{
            f"decide.{label}.{measure}": _make_class_fold(label, measure)
            for label in _CLASSES
            for measure in ("precision", "recall", "f1", "accuracy")
        },
        "calls.refused_rate": lambda samples: _measure_calls(samples, read_refused),
        "calls.executed_pass_rate": lambda samples: _measure_calls(samples, read_executed),
        "calls.pass_rate": lambda samples: _measure_calls(samples, read_pass),
    }
)
"""Metrics that only a whole set has."""

_SUBJECTS = {name: "call_or_no_call_precision" for name in SET_METRICS if name.startswith("decide.")}

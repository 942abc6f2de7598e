"""The names that an assertion may use, and what they stand for.

Of a case (`X.score`, `X.pass_rate`, `X.p90_score`, ...): those of `DERIVED`, every stage and every criterion. A stage goes
before a criterion of the same name; `criterion.X` and `stage.X` say which. Of the whole set: those of `WHOLE`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from math import fsum
from types import MappingProxyType
from typing import NamedTuple, Protocol

from service.core.decisions import CallClass
from service.core.rates import Part, pass_hat_k, percentile, ratio
from service.core.rubric import STAGES
from service.core.summary.classes import Tally, all_decisions
from service.core.summary.repeats import TASK, tasks_of
from service.core.summary.samples import CRITERION, DERIVED, STAGE, Sample
from service.errors import InputError

Samples = Sequence[Sample]


class Measured(NamedTuple):
    """A number of a set (None: there is none, and `why`), the cases it is over, and those that could not be measured."""

    value: float | None
    cases: int
    unmeasured: int = 0
    why: str = "no case measured it"


class Metric(NamedTuple):
    """A number over a set. `of_case` is the metric of a case that it is about; None: the verdict."""

    of_case: str | None
    over: Callable[[Samples], Measured]


NOTHING = Measured(None, 0)


def metric(name: str, samples: Samples) -> Metric:
    """The metric of a name over the set, as `pass_rate`, `decide.call.recall`, `tool_name_f1.score`, `select.p10_score`.

    `X` alone and `X.score` are the mean of X. InputError for a name that means nothing here.
    """
    if name in WHOLE:
        return Metric(_SUBJECTS.get(name), WHOLE[name])
    if found := _PASS_K.fullmatch(name):
        return Metric(None, partial(_pass_k, k=int(found[1])))
    base, _, last = name.rpartition(".")
    fold = _fold(last)
    if fold is None:
        base, fold = name, _mean
    key = case_metric(base, samples, whole=name) if base else "score"
    return Metric(key, partial(fold, key=key))


def case_metric(name: str, samples: Samples, *, whole: str = "") -> str:
    """The key of a case's metric in `Sample.values`. InputError for a name that no report and no table knows."""
    base = name.removesuffix(".score")
    criteria = {one.id for sample in samples for one in sample.report.criteria}
    if base in DERIVED or base.removeprefix(STAGE) in STAGES:
        return base if base in DERIVED else STAGE + base.removeprefix(STAGE)
    if base.removeprefix(CRITERION) in criteria:
        return CRITERION + base.removeprefix(CRITERION)
    known = sorted({*DERIVED, *STAGES, *criteria, *WHOLE, *FOLDS})
    close = get_close_matches(base, known, n=3) or known
    raise InputError.at(
        "", f"no metric {whole or name}; {'near it' if len(close) <= 3 else 'known'}: {', '.join(close)}"
    )


def _over_values(samples: Samples, key: str, number: Callable[[list[float]], float]) -> Measured:
    """A number over the measured values; none where they are less than half of those that should be there."""
    values = [sample.values[key] for sample in samples if key in sample.values]
    unmeasured = sum(key in sample.unmeasured for sample in samples)
    if len(values) < max(1, unmeasured):
        return Measured(None, len(values), unmeasured, _too_few(len(values), unmeasured))
    return Measured(number(values), len(values), unmeasured)


def _over_verdicts(samples: Samples, key: str, number: Callable[[list[bool]], float]) -> Measured:
    """A number over whether each case passed that the metric applies to; one that could not be measured did not."""
    applying = [sample for sample in samples if (sample.verdict_counts if key == "score" else sample.applies(key))]
    unmeasured = sum(key in sample.unmeasured for sample in applying)
    if unmeasured == len(applying):
        return Measured(None, len(applying), unmeasured, _too_few(0, unmeasured))
    passed = [sample.passed if key == "score" else sample.passes(key) for sample in applying]
    return Measured(number(passed), len(passed), unmeasured)


def _too_few(measured: int, unmeasured: int) -> str:
    if not unmeasured:
        return NOTHING.why
    return f"only {measured} of the {measured + unmeasured} cases that it applies to could be measured"


def _mean(samples: Samples, key: str) -> Measured:
    return _over_values(samples, key, lambda values: fsum(values) / len(values))


def _at(samples: Samples, key: str, q: float) -> Measured:
    return _over_values(samples, key, lambda values: percentile(values, q))


def _pass_rate(samples: Samples, key: str) -> Measured:
    return _over_verdicts(samples, key, lambda passed: sum(passed) / len(passed))


class Fold(Protocol):
    """How the values of cases become one number."""

    def __call__(self, samples: Samples, key: str) -> Measured:
        """The number over the metric of that key."""
        ...


FOLDS: Mapping[str, Fold] = MappingProxyType(
    {
        "score": _mean,
        "avg_score": _mean,
        "min_score": lambda samples, key: _over_values(samples, key, min),
        "max_score": lambda samples, key: _over_values(samples, key, max),
        "pass_rate": _pass_rate,
        "total_pass_rate": _pass_rate,
        "passed_count": lambda samples, key: _over_verdicts(samples, key, sum),
        "failed_count": lambda samples, key: _over_verdicts(samples, key, lambda passed: passed.count(False)),
        "total_count": lambda samples, key: _over_verdicts(samples, key, len),
    }
)
"""How the cases' values become one number, beside `pN_score`, the N-th percentile. Alone they are about the score and
verdict of whole cases, after a metric and a dot about that metric."""

_PERCENTILE = re.compile(r"p(\d{1,2}|100)_score")
_PASS_K = re.compile(r"pass\^([1-9]\d{0,3})")


def _fold(name: str) -> Fold | None:
    if found := _PERCENTILE.fullmatch(name):
        return partial(_at, q=float(found[1]))
    return FOLDS.get(name)


def _share(parts: Sequence[Part]) -> Measured:
    counted = [part for part in parts if part.size > 0]
    return Measured(ratio(counted), len(counted)) if counted else NOTHING


def _pass_k(samples: Samples, k: int) -> Measured:
    tasks = tasks_of(samples)
    if not tasks:
        return Measured(None, 0, why=f"no case names its task by a tag {TASK}")
    scarce = min(tasks, key=lambda task: task.trials)
    if scarce.trials < k:
        return Measured(None, len(tasks), why=f"the task {scarce.task} has only {scarce.trials} trials")
    return Measured(fsum(pass_hat_k(t.trials, t.successes, k) for t in tasks) / len(tasks), len(tasks))


def _of_class(label: CallClass, measure: str) -> Callable[[Samples], Measured]:
    return lambda samples: _share(Tally(samples, label).parts(measure))


_CLASSES: tuple[CallClass, ...] = ("call", "no_call")

WHOLE: Mapping[str, Callable[[Samples], Measured]] = MappingProxyType(
    {
        "decide.accuracy": lambda samples: _share(all_decisions(samples)),
        **{
            f"decide.{label}.{measure}": _of_class(label, measure)
            for label in _CLASSES
            for measure in ("precision", "recall", "f1", "accuracy")
        },
    }
)
"""Metrics that only a whole set has."""

_SUBJECTS = dict.fromkeys(WHOLE, "call_or_no_call_precision")

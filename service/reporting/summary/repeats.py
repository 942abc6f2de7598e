"""Several trials of each task: pass^k."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from service.errors import InputError
from service.reporting.summary.samples import Sample
from service.stats.intervals import choose_interval
from service.stats.rates import CaseBounds, Estimate, estimate_with_bounds, pass_hat_k

TASK = "task"
"""The tag that names the task a case is a trial of."""

MAX_DEFAULT_K = 10
"""The largest k that is computed by default."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task: `successes` of `trials` passed, and `open` ones are undecided."""

    task: str
    trials: int
    successes: int
    open: int = 0


@dataclass(frozen=True, slots=True)
class PassK:
    """The mean over tasks of the chance that k trials all pass. The interval resamples tasks."""

    k: int
    rate: Estimate


@dataclass(frozen=True, slots=True)
class Repeats:
    """pass^k for each k, and the tasks it is based on."""

    pass_k: tuple[PassK, ...]
    tasks: tuple[Task, ...]


def summarize_repeats(samples: Iterable[Sample], ks: Sequence[int]) -> Repeats | None:
    """Compute pass^k over the cases with a tag `task`; None where none has it and no k is asked for.

    A case to which nothing applied is no trial. `ks` empty: every k up to the fewest trials of a task, at most 10. InputError
    where a requested k exceeds a task's trials: leaving the task out would give another number.
    """
    tasks = list_tasks(samples)
    if not tasks:
        if ks:
            raise InputError.at("/pass_k", f"no case names its task; set the tag `{TASK}`")
        return None
    fewest = min(tasks, key=lambda task: task.trials)
    for k in ks:
        if k > fewest.trials:
            raise InputError.at("/pass_k", f"pass^{k}: the task {fewest.task!r} has {fewest.trials} trials")
    chosen = sorted(set(ks)) or range(1, min(fewest.trials, MAX_DEFAULT_K) + 1)
    return Repeats(tuple([PassK(k, compute_pass_rate(tasks, k)) for k in chosen]), tasks)


def compute_pass_rate(tasks: Iterable[Task], k: int) -> Estimate:
    """Compute pass^k over tasks that each have at least k trials; ValueError for one with fewer.

    An open trial is a failure at worst and a success at best; the measured rate is over tasks with k decided trials.
    """
    bounds: list[CaseBounds] = []
    for one in tasks:
        decided = one.trials - one.open
        worst, best = (pass_hat_k(one.trials, passed, k) for passed in (one.successes, one.successes + one.open))
        measured = pass_hat_k(decided, one.successes, k) if decided >= k else None
        bounds.append(CaseBounds(one.task, worst, best, measured))
    return estimate_with_bounds(bounds, choose_interval)


def list_tasks(samples: Iterable[Sample]) -> tuple[Task, ...]:
    """List the tasks that cases name, each with its trials; a case to which nothing applied is none."""
    trials: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        task = sample.report.tags.get(TASK)
        if task is not None and sample.is_applicable:
            trials[task].append(sample)
    tasks: list[Task] = []
    for name, found in sorted(trials.items()):
        passed, undecided = sum(one.passed for one in found), sum(one.undecided for one in found)
        tasks.append(Task(name, len(found), passed, undecided))
    return tuple(tasks)

"""Fold criteria into scores, coverage and verdicts.

Outcomes fold into criteria (`criterion_results`), criteria into stages, stages into a trace or step. Each fold happens in up to
three worlds: over the measured outcomes, with open ones at worst (0, not passed) and at best (1, passed). There is a verdict only
if no answer to an open question could change it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import fsum
from typing import Literal, NamedTuple

from service.core.criterion_results import CriterionResult, CriterionWorth, fold_criterion
from service.core.outcome import PERFECT, Outcome, Scored, Skipped
from service.core.rubric import CompiledCriterion, Rubric, Stage, Thresholds

Verdict = Literal["pass", "warn", "fail", "undecided", "not_applicable"]

WorldVerdict = Literal["pass", "warn", "fail"] | None
"""The verdict in one world; None if nothing is left to average."""

Range = tuple[float, float]

TOLERANCE = 1e-9
"""A score this close to a threshold has reached it: weights like 0.7 and 0.3 do not add up exactly."""


class StageWorld(NamedTuple):
    """The score and verdict of a stage in one world; no score if nothing is left to average."""

    score: float | None
    verdict: WorldVerdict


NO_STAGE = StageWorld(None, None)


class World(NamedTuple):
    """The score and verdict of a trace or step in one world, with its stages."""

    score: float | None
    verdict: WorldVerdict
    stages: Mapping[Stage, StageWorld]


Weighted = tuple[CompiledCriterion, CriterionWorth]


def fold_world(worths: Sequence[Weighted], rubric: Rubric) -> World:
    """Fold the values of criteria in one world. Criteria without a value are left out by the caller."""
    by_stage: dict[Stage, list[Weighted]] = {}
    for one in worths:
        by_stage.setdefault(one[0].stage, []).append(one)
    stages: dict[Stage, StageWorld] = {}
    for stage, group in by_stage.items():
        average = _average_worths(group)
        stages[stage] = StageWorld(average, _decide_world_verdict(group, average, rubric.thresholds))
    if rubric.stages is None:
        score = _average_worths(worths)
    else:
        weights = rubric.stage_weights
        score = _average([(weights[stage], one.score) for stage, one in stages.items() if one.score is not None])
    verdict = _decide_world_verdict(worths, score, rubric.thresholds)
    if rubric.verdict == "worst_stage":
        every: list[WorldVerdict] = [verdict, *[of_stage for _, of_stage in stages.values()]]
        verdict = max(every, key=lambda one: _SEVERITY[one])
    return World(score, verdict, stages)


_SEVERITY: dict[WorldVerdict, int] = {None: 0, "pass": 1, "warn": 2, "fail": 3}


def _decide_world_verdict(worths: Iterable[Weighted], score: float | None, thresholds: Thresholds) -> WorldVerdict:
    for criterion, worth in worths:
        if worth.failed and criterion.must_pass:
            return "fail"
    if score is None:
        return None
    if score < thresholds.fail - TOLERANCE:
        return "fail"
    return "warn" if score < thresholds.warn - TOLERANCE else "pass"


def _average_worths(worths: Sequence[Weighted]) -> float | None:
    if len(worths) == 1 and worths[0][0].weight:
        return worths[0][1].value
    return _average([(criterion.weight, worth.value) for criterion, worth in worths])


def _average(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the weighted mean, or None if all weights are 0. Sums are exactly rounded, so order changes no digit."""
    whole = fsum([weight for weight, _ in pairs])
    return min(1.0, fsum([weight * value for weight, value in pairs]) / whole) if whole else None


class Fold(NamedTuple):
    """The verdict and scores of a trace, a step or a stage."""

    verdict: Verdict
    score: float | None
    """Over the measured outcomes."""
    coverage: float | None
    """The share of the applicable weight that was measured; None if nothing applies."""
    score_range: Range | None
    """The score at worst and at best; None if no outcome is measured or open."""
    full_range: Range | None
    """The same with what was left out at 0 and at 1 too; None if nothing applies."""


NOTHING = Fold("not_applicable", None, None, None, None)


class StagedFold(NamedTuple):
    """A trace or step with its stages, in the order of the contract."""

    whole: Fold
    stages: tuple[tuple[Stage, Fold], ...]
    worst: WorldVerdict
    best: WorldVerdict
    failing: tuple[str, ...]
    """The ids of criteria with an outcome that did not pass."""
    clean: bool
    """Whether everything applicable was measured and passed."""
    first_failing: Stage | None
    """The first stage that fails."""


MAX_KEPT_FOLDS = 1_024


def fold_results(results: Sequence[CriterionResult], rubric: Rubric) -> StagedFold:
    """Fold criterion results into verdicts and scores, by stage and as a whole. Caches folds with the rubric."""
    key = (*results,)
    kept = rubric.fold_cache.get(key)
    if kept is not None:
        return kept  # pyright: ignore[reportReturnType] (what was put there)
    if len(rubric.fold_cache) >= MAX_KEPT_FOLDS:
        rubric.fold_cache.clear()
    folded = rubric.fold_cache[key] = _fold_results(results, rubric)
    return folded


def _fold_results(results: Sequence[CriterionResult], rubric: Rubric) -> StagedFold:
    worlds = _fold_worlds(results, rubric)
    worst, best = worlds[1:3]
    least = rubric.thresholds.min_coverage - TOLERANCE
    covered = _compute_stage_coverages(results)
    stages: list[tuple[Stage, Fold]] = [
        (stage, _fold([world.stages.get(stage, NO_STAGE) for world in worlds], coverage, least))
        for stage, coverage in covered.items()
    ]
    shares = [(one.criterion.weight, one.coverage) for one in results if one.coverage is not None]
    if rubric.stages is not None:
        shares = [(rubric.stage_weights[stage], share) for stage, share in covered.items() if share is not None]
    coverage = _average(shares)
    failing = tuple([one.criterion.id for one in results if one.failed])
    clean = not [one for one in results if not one.clean]
    first: Stage | None = next((stage for stage, fold in stages if fold.verdict == "fail"), None)
    return StagedFold(_fold(worlds, coverage, least), tuple(stages), worst.verdict, best.verdict, failing, clean, first)


def _fold_worlds(results: Sequence[CriterionResult], rubric: Rubric) -> list[World]:
    """Fold all criteria as measured, at worst, at best, at their lowest and at their highest; equal worlds only once."""
    criteria = [one.criterion for one in results]
    folded: dict[tuple[CriterionWorth | None, ...], World] = {}
    worlds: list[World] = []
    for worths in zip(*[one.worlds for one in results], strict=True):
        if worths not in folded:
            pairs = [(criterion, worth) for criterion, worth in zip(criteria, worths, strict=True) if worth is not None]
            folded[worths] = fold_world(pairs, rubric)
        worlds.append(folded[worths])
    return worlds


def _fold(worlds: Sequence[World | StageWorld], coverage: float | None, least: float) -> Fold:
    measured, worst, best, lowest, highest = worlds
    verdict = _decide_verdict(worst.verdict, best.verdict, coverage, least)
    if verdict == "not_applicable":
        return NOTHING
    return Fold(verdict, measured.score, coverage, _pair(worst, best), _pair(lowest, highest))


def _pair(low: World | StageWorld, high: World | StageWorld) -> Range | None:
    return None if low.score is None or high.score is None else (low.score, high.score)


def _decide_verdict(worst: WorldVerdict, best: WorldVerdict, coverage: float | None, least: float) -> Verdict:
    if best == "fail":
        return "fail"
    if coverage is None and worst != "fail":
        return "not_applicable"
    if coverage is None or coverage < least or worst is None or best is None:
        return "undecided"
    if worst == best:
        return best
    return "undecided" if worst == "fail" else "warn"


def _compute_stage_coverages(results: Iterable[CriterionResult]) -> dict[Stage, float | None]:
    by_stage: dict[Stage, list[tuple[float, float]]] = {}
    for criterion, _, coverage, *_ in results:
        pairs = by_stage.setdefault(criterion.stage, [])
        if coverage is not None:
            pairs.append((criterion.weight, coverage))
    return {
        stage: pairs[0][1] if len(pairs) == 1 and pairs[0][0] else _average(pairs) for stage, pairs in by_stage.items()
    }


def find_deciding_criteria(results: Sequence[CriterionResult], folded: StagedFold, rubric: Rubric) -> frozenset[str]:
    """Return the ids of criteria whose open outcomes decide: at worst, with all others at best, they change the best verdict.

    If none does so alone, all open criteria decide. Empty if no answer could change the verdict.
    """
    if folded.worst == folded.best:
        return frozenset()
    groups: dict[object, list[CriterionResult]] = {}
    for one in results:
        if one.worst != one.best:
            alike = one.criterion.stage, one.criterion.must_pass, one.worst and one.worst.failed
            groups.setdefault(alike, []).append(one)
    alone = [one for group in groups.values() for one in _find_tipping(group, results, folded.best, rubric)]
    return frozenset([one.criterion.id for one in alone or chain.from_iterable(groups.values())])


def _find_tipping(
    group: Iterable[CriterionResult], results: Sequence[CriterionResult], best: WorldVerdict, rubric: Rubric
) -> Sequence[CriterionResult]:
    """Return the criteria of a group that change the best verdict: those with the largest losses."""

    def compute_loss(one: CriterionResult) -> float:  # of its stage, before dividing by the stage's total weight
        return one.criterion.weight * (one.best.value - one.worst.value) if one.best and one.worst else 0.0

    def tips(worst: CriterionResult) -> bool:
        chosen = [(one.criterion, one.worst if one is worst else one.best) for one in results]
        return fold_world([(criterion, worth) for criterion, worth in chosen if worth], rubric).verdict != best

    by_loss = sorted(group, key=compute_loss)
    return by_loss[bisect_left(by_loss, True, key=tips) :]


def fold_step(outcomes: Sequence[tuple[CompiledCriterion, Outcome]], rubric: Rubric) -> Fold:
    """Fold the outcomes of one step."""
    perfect = False
    for criterion, outcome in outcomes:
        if outcome is PERFECT and criterion.weight:
            perfect = True
        elif type(outcome) is not Skipped or outcome.cause != "not_applicable":
            break
    else:
        return PERFECT_STEP if perfect else NOTHING  # the same as folding them
    key = tuple([_make_key(criterion, outcome) for criterion, outcome in outcomes])
    kept = None if None in key else rubric.fold_cache.get(("step", key))
    if kept is not None:
        return kept  # pyright: ignore[reportReturnType] (what was put there)
    fold = fold_results([fold_criterion(criterion, (outcome,)) for criterion, outcome in outcomes], rubric).whole
    if None not in key and len(rubric.fold_cache) < MAX_KEPT_FOLDS:
        rubric.fold_cache["step", key] = fold
    return fold


def _make_key(criterion: CompiledCriterion, outcome: Outcome) -> tuple[object, ...] | None:
    """Return what matters in an outcome as a cache key; None for kinds with more fields."""
    if type(outcome) is Scored:
        return criterion.id, outcome.value, outcome.passed
    return (criterion.id, outcome.cause, outcome.open, outcome.bounds) if type(outcome) is Skipped else None


PERFECT_STEP = Fold("pass", 1.0, 1.0, (1.0, 1.0), (1.0, 1.0))

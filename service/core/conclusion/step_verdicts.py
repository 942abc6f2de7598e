"""The verdict on every step: what all criteria say about one call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from service.core.case import Pair, fold_name
from service.core.conclusion.judge_answers import Row
from service.core.outcome import Outcome, Scored, is_open
from service.core.plan import Plan
from service.core.report import StepVerdict
from service.core.results.structure import list_forms
from service.core.rubric import CompiledCriterion
from service.core.scores import fold_step


def build_step_verdicts(plan: Plan, rows: Iterable[Row]) -> tuple[StepVerdict, ...]:
    """Build a verdict for each step of the trace from the outcomes about it."""
    by_step: list[list[tuple[CompiledCriterion, Outcome]]] = [[] for _ in plan.trace.steps]
    for criterion, outcomes in rows:
        for subject, outcome in outcomes:
            if subject.step is not None:
                by_step[subject.step].append((criterion, outcome))
    matched: list[Pair | None] = [None] * len(by_step)
    for pair in plan.alignment.pairs:
        matched[pair.step] = pair
    return tuple([_build_step_verdict(plan, n, outcomes, matched[n]) for n, outcomes in enumerate(by_step)])


def _build_step_verdict(
    plan: Plan, index: int, outcomes: list[tuple[CompiledCriterion, Outcome]], pair: Pair | None
) -> StepVerdict:
    fold = fold_step(outcomes, plan.rubric)
    step = plan.trace.steps[index]
    tool = None if pair is None else pair.pattern.tool
    if tool is not None and plan.rubric.fold_names and fold_name(tool) == fold_name(step.call.name):
        tool = step.call.name
    return StepVerdict(
        index=index,
        turn=step.turn,
        tool=step.call.name,
        verdict=fold.verdict,
        score=fold.score,
        matched=None if pair is None else pair.expected,
        expected=None if pair is None else pair.path,
        expected_tool=tool,
        unexpected=index in plan.unexpected_steps,
        retry=plan.alignment.tries.get(index) if plan.alignment.tries else None,
        outcomes=_group_by_criterion(outcomes),
        result_forms=() if step.result is None else list_forms(step.result.content),
        usage=step.usage,
        agent=step.agent,
    )


def _group_by_criterion(pairs: Iterable[tuple[CompiledCriterion, Outcome]]) -> dict[str, Outcome]:
    """Return each criterion's outcome; of several at one step the worst, with the findings of both if they are scores."""
    outcomes: dict[str, Outcome] = {}
    for criterion, outcome in pairs:
        name = criterion.id
        outcomes[name] = _pick_worse(outcomes[name], outcome) if name in outcomes else outcome
    return outcomes


def _pick_worse(one: Outcome, other: Outcome) -> Outcome:
    if isinstance(one, Scored) and isinstance(other, Scored):
        worse = min(one, other, key=lambda each: (each.passed, each.decision))
        return replace(worse, findings=(*one.findings, *other.findings))
    # Failed comes before open, open before passed, and passed before skipped.
    return min(one, other, key=lambda each: 2 * each.passed if isinstance(each, Scored) else 1 if is_open(each) else 3)

"""The first half of scoring: code decides what it can, and the rest becomes questions for judges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from service.core.call_decisions import Decision, find_decisions, find_unexpected_steps
from service.core.case import Alignment, Case
from service.core.checks import WHOLE, Aspect, Check, Subject, collect_outcomes
from service.core.expectations.expectation import Expectation, ExpectedCall, Listing
from service.core.expectations.merging import leave_out_arguments, merge_expectations
from service.core.judging.judged_outcomes import PendingOutcome
from service.core.judging.judges import WORDS, Ask, JudgeCheck, is_answered
from service.core.models.light import light
from service.core.outcome import PERFECT, Outcome, PartialOutcome, Scored, SkipCause, Skipped, is_open
from service.core.results.failures.marking import mark_failures
from service.core.rubric import CompiledCriterion, Rubric
from service.core.trace import Trace
from service.core.unread_parts import CheckReach, fail_written_calls, open_unread_outcomes, read_written_calls

PlannedOutcome = tuple[Subject, Outcome | Ask | PendingOutcome]
"""A criterion's outcome for one subject, or the questions whose replies will decide it."""


@light
class CriterionPlan:
    """A criterion and its planned outcomes, at least one."""

    criterion: CompiledCriterion
    outcomes: Sequence[PlannedOutcome]
    open: bool
    """Whether any outcome waits for a judge."""
    questions_saved: int = 0
    """How many questions code answered, so that no judge is needed."""
    perfect: bool = False
    """Whether every outcome is PERFECT."""
    at_steps: bool = False
    """Whether each PERFECT outcome is about a step, so that the steps report all of them."""
    blocked: bool = False
    """Whether a blocking check failed before it."""
    idle: Skipped | None = None
    """Why it does not apply to the trace, if that is its only outcome."""


class BlockedAsk(NamedTuple):
    """A question that no judge is asked, and why."""

    ask: Ask
    why: str


@light
class Plan:
    """Everything known before a judge is asked: the criteria, in the order of their stages, with their outcomes."""

    trace: Trace
    rubric: Rubric
    expectation: Expectation | None
    listing: Listing
    """The expectation section by section."""
    alignment: Alignment
    expected_calls: tuple[ExpectedCall, ...]
    criteria: tuple[CriterionPlan, ...]
    blocked_asks: tuple[BlockedAsk, ...]
    """Questions that a failed blocking check makes needless."""
    questions_saved: int
    """How many questions code answered, so that no judge is needed."""
    decisions: tuple[Decision, ...]
    unexpected_steps: frozenset[int]
    """The steps that count as unexpected calls."""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The questions for judges, in order."""
        return tuple(
            [ask for one in self.criteria if one.open for _, found in one.outcomes for ask in list_asks(found)]
        )


def list_asks(found: Outcome | Ask | PendingOutcome) -> tuple[Ask, ...]:
    """List the questions that an outcome waits for."""
    if type(found) is Ask:
        return (found,)
    return found.asks if type(found) is PendingOutcome else ()


NO_ALIGNMENT = Alignment((), (), ())
NO_OUTCOME: tuple[Subject, Skipped] = (WHOLE, Skipped("not_applicable", "nothing to look at"))


def plan(trace: Trace, rubric: Rubric, expectation: Expectation | None = None) -> Plan:
    """Run every deterministic check and list the questions for judges. Pure. Raises KeyError for an unknown judge."""
    if trace.unread and rubric.text_calls == "read":
        trace = read_written_calls(trace)
    trace = mark_failures(trace, rubric.errors)
    expectation = merge_expectations(expectation, rubric.expected)
    relaxed = leave_out_arguments(expectation, trace)
    case = Case(trace, relaxed, rubric.matching)
    unblocked = _plan_criteria(case, rubric)
    if case.trace.unread and rubric.text_calls == "fail":
        unblocked = tuple([_fail_written_calls(one, case.trace) for one in unblocked])
    blockers = _Blockers(unblocked)
    criteria = tuple([_block_criterion(one, blockers) for one in unblocked]) if blockers.by_rank else unblocked
    decisions, unexpected_steps = find_decisions(case), find_unexpected_steps(case)
    alignment = case.alignment if case.expected_calls else NO_ALIGNMENT
    case.__dict__.pop("comparisons", None)  # it refers back to the case, and collecting cycles is slow
    return Plan(
        trace=trace,
        rubric=rubric,
        expectation=expectation,
        listing=case.listing if expectation is relaxed or expectation is None else expectation.list_sections(),
        alignment=alignment,
        expected_calls=case.expected_calls,
        criteria=criteria,
        blocked_asks=tuple(_iter_blocked_asks(unblocked, criteria)) if blockers.by_rank else (),
        questions_saved=_count_saved(criteria) if rubric.judge_ids else 0,
        decisions=decisions,
        unexpected_steps=unexpected_steps,
    )


def _plan_criteria(case: Case, rubric: Rubric) -> tuple[CriterionPlan, ...]:
    """Plan every criterion. Checks run before judged criteria: what code answers need not be asked."""
    aspects = case.other_aspects if rubric.has_idle_checks and not case.trace.unread else None
    kept = rubric.plan_cache.get(aspects)
    split: _Split = _split_criteria(rubric, aspects) if kept is None else kept  # pyright: ignore[reportAssignmentType] (only splits are put there)
    checked = {**split.idle, **{one.id: _look(case, one, rubric) for one in split.looking}}
    asked = {one.id: _ask(case, one, rubric, checked) for one in split.judged} if split.judged else {}
    return tuple(map({**checked, **asked}.__getitem__, split.order))


@light
class _Split:
    """A rubric's criteria, divided by what an expectation says."""

    order: tuple[str, ...]
    idle: Mapping[str, CriterionPlan]
    """Plans of the criteria that only look at aspects the expectation does not specify: they need not run."""
    looking: tuple[CompiledCriterion, ...]
    judged: tuple[CompiledCriterion, ...]


def _split_criteria(rubric: Rubric, aspects: frozenset[Aspect] | None) -> _Split:
    """Divide a rubric's criteria, and cache that with it: expectations differ in few ways. `aspects` None: none is idle."""
    criteria = rubric.compiled_criteria
    idle = {
        one.id: _plan_idle(one, nothing.cause, nothing.reason)
        for one in criteria
        if not one.judged and (nothing := one.check.idle_outcome) is not None and aspects is not None
        if not aspects & one.reads
    }
    looking = tuple([one for one in criteria if not one.judged and one.id not in idle])
    split = _Split(tuple([one.id for one in criteria]), idle, looking, tuple([one for one in criteria if one.judged]))
    rubric.plan_cache[aspects] = split
    return split


def _look(case: Case, criterion: CompiledCriterion, rubric: Rubric) -> CriterionPlan:
    seen = collect_outcomes(case, criterion.check.look) or [NO_OUTCOME]
    if case.trace.unread:
        seen = open_unread_outcomes(_find_reach(criterion.check, case), seen, case.trace.unread)
    at_steps = True
    for subject, found in seen:
        if found is not PERFECT:
            break
        at_steps = at_steps and subject.step is not None
    else:
        return CriterionPlan(criterion, seen, False, perfect=True, at_steps=at_steps)  # pyright: ignore[reportArgumentType] (it holds outcomes alone)
    subject, first = seen[0]
    if subject is WHOLE and type(first) is Skipped and not (first.findings or first.open or first.bounds or seen[1:]):
        return _plan_idle(criterion, first.cause, first.reason)
    if not [found for _, found in seen if type(found) is PartialOutcome]:
        return CriterionPlan(criterion, seen, False)  # pyright: ignore[reportArgumentType] (it holds outcomes alone)
    outcomes = [(subject, _build_pending(found, criterion, subject, case, rubric)) for subject, found in seen]
    return CriterionPlan(criterion, outcomes, any(isinstance(found, PendingOutcome) for _, found in outcomes))


@lru_cache(maxsize=4096)
def _plan_idle(criterion: CompiledCriterion, cause: SkipCause, reason: str) -> CriterionPlan:
    """Plan a criterion whose only outcome is a reason. Cached: most criteria do not apply."""
    skipped = Skipped(cause, reason)
    return CriterionPlan(criterion, ((WHOLE, skipped),), False, idle=skipped if cause == "not_applicable" else None)


def _find_reach(check: Check, case: Case) -> CheckReach:
    aspects = check.aspects()
    return CheckReach(check.looks_at, bool(aspects), bool(aspects & CALLS) and case.lists_calls)


CALLS: frozenset[Aspect] = frozenset({"tools", "extra", "args"})
"""The aspects that say which calls are right."""


def _fail_written_calls(plan: CriterionPlan, trace: Trace) -> CriterionPlan:
    """Return the plan of a criterion that asks whether to call, failed in each turn with a call in a text."""
    failed = fail_written_calls(trace) if plan.criterion.stage == "decide" else []
    turns = {subject.turn for subject, _ in failed}
    if not failed:
        return plan
    kept = [one for one in plan.outcomes if one[0].turn not in turns and one[0] is not WHOLE]
    opened = any(list_asks(found) for _, found in kept)
    return CriterionPlan(plan.criterion, [*kept, *failed], opened, plan.questions_saved)


def _ask(
    case: Case, criterion: CompiledCriterion, rubric: Rubric, checked: Mapping[str, CriterionPlan]
) -> CriterionPlan:
    check: JudgeCheck = criterion.check  # pyright: ignore[reportAssignmentType] (a judged criterion has one)
    before = checked.get(check.unless or "")
    seen = before.outcomes if before else ()
    answered = {subject for subject, found in seen if found is PERFECT or isinstance(found, Scored)}
    if before is not None and case.expected_calls and before.criterion.reads & CALLS:
        # Code decides about tries with their retries.
        answered |= {case.subjects[j] for j in (*case.alignment.tries, *case.alignment.possible_tries)}
    judges = rubric.judges_by_id
    asked: Sequence[tuple[Subject, Ask | Outcome]] = collect_outcomes(
        case, partial(check.build_asks, criterion=criterion.id, judges=judges, answered=answered)
    )
    if case.trace.unread:
        asked = open_unread_outcomes(CheckReach(check.find_parts(judges), False), asked, case.trace.unread)
    if before is None:
        return _plan_asked(criterion, asked)
    needless = build_needless(check.unless)
    outcomes: list[tuple[Subject, Ask | Outcome]] = []
    for subject, found in asked:
        decided = subject in answered or is_answered(subject, answered)
        outcomes.append((subject, needless if decided and _is_question(found) else found))
    if not before.perfect:
        outcomes = _open_undecided(outcomes, before)
    return _plan_asked(criterion, outcomes, sum([found is needless for _, found in outcomes]))


def _plan_asked(
    criterion: CompiledCriterion, outcomes: Sequence[tuple[Subject, Ask | Outcome]], saved: int = 0
) -> CriterionPlan:
    for _, found in outcomes:
        if type(found) is Ask:
            return CriterionPlan(criterion, outcomes, True, saved)
    return CriterionPlan(criterion, outcomes, False, saved)


@lru_cache(maxsize=256)
def build_needless(criterion: str | None) -> Skipped:
    """Build the outcome of a question that another criterion has already decided."""
    return Skipped("not_applicable", f"{criterion} has decided it")


def _open_undecided(
    outcomes: list[tuple[Subject, Ask | Outcome]], before: CriterionPlan
) -> list[tuple[Subject, Ask | Outcome]]:
    """Open the outcomes whose `unless` check is itself open: once it is decided, they may not apply."""
    opened = {
        subject
        for subject, found in before.outcomes
        if found is not PERFECT and not isinstance(found, Ask | PendingOutcome) and is_open(found)
    }
    if not opened:
        return outcomes
    waits = Skipped("not_asked", f"{before.criterion.id} is open, and may decide it")
    return [
        (subject, waits if isinstance(found, Ask | Scored) and is_answered(subject, opened) else found)
        for subject, found in outcomes
    ]


def _is_question(found: Outcome | Ask) -> bool:
    if type(found) is Ask:
        return True
    return found.cause == "unread" if isinstance(found, Skipped) else isinstance(found, Scored)


def _build_pending(
    found: Outcome | PartialOutcome, criterion: CompiledCriterion, subject: Subject, case: Case, rubric: Rubric
) -> Outcome | PendingOutcome:
    if not isinstance(found, PartialOutcome):
        return found
    judge = rubric.judges_by_id.get(WORDS)
    tool = None if subject.step is None else case.trace.steps[subject.step].call.name
    if judge is None:
        return PendingOutcome(found, tuple([one.skipped or NO_WORDS for one in found.open]))
    about = criterion.id, judge, subject.step, tool, subject.turn
    parts = [one.skipped or Ask(*about, one.place, one.words, one.value) for one in found.open]
    return PendingOutcome(found, tuple(parts))


NO_WORDS = Skipped("not_asked", f"no judge {WORDS} is known here")


def _count_saved(criteria: Iterable[CriterionPlan]) -> int:
    """Count the questions for judges that code answered or made needless."""
    saved = 0
    for one in criteria:
        if one.criterion.judged:
            saved += one.questions_saved
            for _, found in one.outcomes:
                saved += type(found) is not Skipped and isinstance(found, Scored)
    return saved


class _Blockers:
    """The failures of blocking checks, by stage and by what they block."""

    def __init__(self, seen: Iterable[CriterionPlan]) -> None:
        self.by_rank: dict[int, dict[Subject, str]] = {}
        for one in seen:
            criterion = one.criterion
            if criterion.blocking and not one.perfect:
                for subject, outcome in one.outcomes:
                    if outcome is PERFECT:
                        continue
                    decided_part = outcome.partial if isinstance(outcome, PendingOutcome) else outcome
                    if isinstance(decided_part, Scored | PartialOutcome) and not decided_part.passed:
                        self.by_rank.setdefault(criterion.rank, {}).setdefault(_widen_subject(subject), criterion.id)

    def before(self, rank: int) -> list[dict[Subject, str]]:
        """Return the failures in earlier stages."""
        return [found for at, found in sorted(self.by_rank.items()) if at < rank]


def _widen_subject(subject: Subject) -> Subject:
    """Return what a failure here blocks: its step or expected call alone, else its turn, else the trace."""
    is_call = subject.step is not None or subject.expected is not None
    return Subject(subject.step, subject.expected) if is_call else subject


def _list_covering(subject: Subject, *, alone: bool) -> tuple[Subject, ...]:
    """List the subjects whose failure blocks this one, widest first; with `alone`, leave out its own step."""
    wide = (WHOLE, Subject(turn=subject.turn))
    return wide if alone else (*wide, _widen_subject(subject))


def _block_criterion(before: CriterionPlan, blockers: _Blockers) -> CriterionPlan:
    """Block a criterion by failures in earlier stages, and a judged one by its own stage too, as asking costs money."""
    criterion = before.criterion
    if before.idle is not None:
        return before
    active = blockers.before(criterion.rank + criterion.judged)
    if not active:
        return before
    outcomes = [
        _block_outcome(planned, active, alone=criterion.check.ignores_step_failures) for planned in before.outcomes
    ]
    opened = before.open and any(isinstance(found, PendingOutcome) or list_asks(found) for _, found in outcomes)
    return CriterionPlan(criterion, outcomes, opened, before.questions_saved, blocked=True)


def _block_outcome(planned: PlannedOutcome, active: list[dict[Subject, str]], *, alone: bool) -> PlannedOutcome:
    subject, outcome = planned
    if isinstance(outcome, Skipped) and outcome.cause == "not_applicable":
        return planned
    blocker = next((found[at] for found in active for at in _list_covering(subject, alone=alone) if at in found), None)
    if blocker is None:
        return planned
    decided_part = outcome.partial if isinstance(outcome, PendingOutcome) else outcome
    findings = decided_part.findings if isinstance(decided_part, Scored | PartialOutcome) else ()
    return subject, Skipped("blocked", f"blocked by {blocker}", findings)


def _iter_blocked_asks(unblocked: Iterable[CriterionPlan], criteria: Iterable[CriterionPlan]) -> Iterator[BlockedAsk]:
    for before, after in zip(unblocked, criteria, strict=True):
        for (_, open_one), (_, outcome) in zip(before.outcomes, after.outcomes, strict=True):
            if isinstance(outcome, Skipped):
                yield from [BlockedAsk(ask, outcome.reason) for ask in list_asks(open_one)]

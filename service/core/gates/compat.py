"""What the gates of published methods share: the other system's number beside ours, and plain values to compute it from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.alignment.binding import BoundArgument, bind
from service.core.case import Case, build_call_path
from service.core.checks import WHOLE, Check, Subject, SubjectOutcome
from service.core.critics import Critic, Exact, OpenComparison
from service.core.expectations.expectation import CallPattern
from service.core.expectations.templates import Template, has_matcher
from service.core.gates.schema import ARGUMENTS_NOT_CAPTURED, build_unparsable
from service.core.gates.tool_name import NO_CALLS
from service.core.json.pointers import escape_token
from service.core.outcome import (
    PERFECT,
    Errored,
    Finding,
    MethodScore,
    Outcome,
    Scored,
    Skipped,
    build_failure,
    decide_without_judge,
)
from service.core.trace import Step
from service.errors import InputError


def build_method_score(
    check: Check, case: Case, raw: float, *, system: str, why: str, places: int | None = None
) -> MethodScore:
    """Build the outcome with the system's own number, our findings and, where our number differs, a finding that says why.

    `places` is the number of decimal places that the system rounds to.
    """
    strict = case.once("strict", lambda: Case(case.trace, case.expectation, case.matching.make_strict()))
    try:
        outcomes = [outcome for _, outcome in check.look(strict)]
    except InputError:  # our check refuses this input, but theirs scores it
        outcomes = []
    values = [outcome.value for outcome in outcomes if isinstance(outcome, Scored)]
    ours = fsum(values) / len(values) if values else None
    findings = [f for outcome in outcomes if not isinstance(outcome, Errored) for f in outcome.findings]
    if ours is None or abs(ours - raw) > 1e-9:
        number = "no number" if ours is None else f"{ours:.6g}"
        if places is not None and ours is not None and round(ours, places) == raw:
            why = f"it rounds to {places} places"
        message = f"{system} gives {raw:.6g}, callgrade {number}: {why}"
        findings.append(Finding("compat_differs", message, "/steps"))
    return MethodScore(value=raw, passed=raw == 1.0, findings=tuple(findings), raw=raw)


def read_plain_args(path: str, pattern: CallPattern, system: str) -> dict[str, JsonValue]:
    """Return the expected arguments as values, for a system without matchers. Raise InputError for any matcher but `exact`."""
    args = pattern.args or {}
    return {name: read_plain(f"{path}/args/{escape_token(name)}", value, system) for name, value in args.items()}


def read_plain(path: str, value: Template, system: str) -> JsonValue:
    """Return an expected value for a system without matchers. Raise InputError for any matcher but `exact`."""
    if isinstance(value, Exact):
        return value.value
    if isinstance(value, Critic) or has_matcher(value):
        raise InputError.at(path, f"{system} compares with values alone: a value, or exact")
    return cast("JsonValue", value)


def add_idle_outcomes(outcomes: Iterable[SubjectOutcome], case: Case) -> list[SubjectOutcome]:
    """Add an outcome for every scope that expects no call: 1.0 where none was made, else 0.0."""
    others = [one for one in outcomes if one[1] is not NO_CALLS]
    return [*others, *_score_idle(case)] or [(WHOLE, NO_CALLS)]


def _score_idle(case: Case) -> Iterable[SubjectOutcome]:
    for _, scope, turn in case.scopes:
        if scope.no_calls:
            steps = case.find_steps(turn)
            over = [
                Finding("over_call", f"{s.call.name} was called where no call was due", build_call_path(s))
                for s in steps
            ]
            yield Subject(turn=turn), build_failure(0.0, *over) if over else PERFECT


def fold_all_or_nothing(subject_outcomes: Sequence[SubjectOutcome]) -> list[SubjectOutcome]:
    """Fold into one outcome: 1.0 if all passed, 0.0 if one failed, else the first that is open."""
    outcomes = [decide_without_judge(outcome) for _, outcome in subject_outcomes]
    findings = [f for outcome in outcomes if not isinstance(outcome, Errored) for f in outcome.findings]
    if any(isinstance(outcome, Scored) and not outcome.passed for outcome in outcomes):
        return [(WHOLE, build_failure(0.0, *findings))]
    open_ones = [outcome for outcome in outcomes if not isinstance(outcome, Scored) and not _is_not_applicable(outcome)]
    if open_ones:
        return [(WHOLE, open_ones[0])]
    scored = any(isinstance(outcome, Scored) for outcome in outcomes)
    return [(WHOLE, Scored(1.0, True, tuple(findings)))] if scored else list(subject_outcomes)


def _is_not_applicable(outcome: Outcome) -> bool:
    return isinstance(outcome, Skipped) and outcome.cause == "not_applicable"


def explain_hidden_arguments(case: Case) -> Skipped | None:
    """Return why a system that compares all arguments cannot score the trace: it lacks those of a call. None: it lacks none."""
    return None if all(step.call.captured for step in case.trace.steps) else ARGUMENTS_NOT_CAPTURED


def spend_on_pairs(case: Case, *, each: int) -> None:
    """Charge the budget for a look at every pair of an expected and an actual call, at `each` comparisons a pair."""
    case.meter.spend("comparisons", each * len(case.expected_calls) * len(case.trace.steps))


class PatternFit(NamedTuple):
    """How a call fits a pattern of its tool: the findings against it and, if there are none, what could not be compared."""

    findings: tuple[Finding, ...] = ()
    open: Skipped | None = None

    @property
    def ok(self) -> bool:
        """Whether the call fits, as far as everything could be compared."""
        return not self.findings and self.open is None


FITS = PatternFit()


def fit_pattern(case: Case, pattern: CallPattern, step: Step, *, extra: bool) -> PatternFit:
    """Compare a call's arguments with the pattern's, but not the tool names. Unless `extra`, other arguments are findings."""
    if pattern.args is None:
        return FITS
    actual = step.call.arguments
    if actual is None:
        return PatternFit((build_unparsable(step),)) if step.call.captured else PatternFit((), ARGUMENTS_NOT_CAPTURED)
    path = f"{build_call_path(step)}/arguments"
    findings: list[Finding] = []
    first_open: Skipped | None = None
    for one in bind_arguments(case, pattern):
        if one.name not in actual:
            if not one.optional:
                findings.append(Finding("missing_argument", f"{one.name}: missing", f"{path}/{escape_token(one.name)}"))
            continue
        match = one.match(actual[one.name])
        if isinstance(match, OpenComparison):
            first_open = first_open or Skipped(match.cause, f"{one.name}: {match.reason}")
        elif not match.passed:
            findings.append(Finding("wrong_argument", f"{one.name}: {match.note}", f"{path}/{escape_token(one.name)}"))
    extras = [] if extra else [name for name in actual if name not in pattern.args]
    findings += [Finding("extra_argument", f"{name}: not expected", f"{path}/{escape_token(name)}") for name in extras]
    return PatternFit(tuple(findings)) if findings else PatternFit((), first_open) if first_open else FITS


def fits(case: Case, pattern: CallPattern, step: Step, *, extra: bool) -> bool:
    """Whether `fit_pattern` finds that the call fits, without its findings, which cost the most time."""
    actual = step.call.arguments
    if pattern.args is None or actual is None:
        return pattern.args is None
    for one in bind_arguments(case, pattern):
        if one.name not in actual:
            if not one.optional:
                return False
            continue
        match = one.match(actual[one.name])
        if isinstance(match, OpenComparison) or not match.passed:
            return False
    return extra or actual.keys() <= pattern.args.keys()


def bind_arguments(case: Case, pattern: CallPattern) -> list[BoundArgument]:
    """Bind the expected arguments of a pattern to their matchers."""
    return case.once(("bound", id(pattern)), lambda: [bind(n, v, critics={}) for n, v in (pattern.args or {}).items()])

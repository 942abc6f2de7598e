"""What the gates that carry a published method share: the other system's number beside ours, and plain values for it."""

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
from service.core.gates.schema import NOT_TOLD, build_unparsable
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
    """The system's own number, with our findings and, where our number is another, one that says so and why.

    `places`: to how many it rounds.
    """
    strict = case.once("strict", lambda: Case(case.trace, case.expectation, case.matching.make_strict()))
    try:
        outcomes = [outcome for _, outcome in check.look(strict)]
    except InputError:  # what ours refuses, their code scores
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
    """The expected arguments as values, for a system without matchers. InputError where there is a matcher but `exact`."""
    args = pattern.args or {}
    return {name: read_plain(f"{path}/args/{escape_token(name)}", value, system) for name, value in args.items()}


def read_plain(path: str, value: Template, system: str) -> JsonValue:
    """An expected value for a system without matchers. InputError for a matcher that is not `exact`."""
    if isinstance(value, Exact):
        return value.value
    if isinstance(value, Critic) or has_matcher(value):
        raise InputError.at(path, f"{system} compares with values alone: a value, or exact")
    return cast("JsonValue", value)


def add_idle(seen: Iterable[SubjectOutcome], case: Case) -> list[SubjectOutcome]:
    """The outcomes with those of every scope in which nothing is to be called: 1.0 where nothing was, else 0.0."""
    kept = [one for one in seen if one[1] is not NO_CALLS]
    return [*kept, *_score_idle(case)] or [(WHOLE, NO_CALLS)]


def _score_idle(case: Case) -> Iterable[SubjectOutcome]:
    for _, scope, turn in case.scopes:
        if scope.no_calls:
            steps = case.find_steps(turn)
            over = [
                Finding("over_call", f"{s.call.name} was called where no call was due", build_call_path(s))
                for s in steps
            ]
            yield Subject(turn=turn), build_failure(0.0, *over) if over else PERFECT


def fold_all_or_nothing(seen: Sequence[SubjectOutcome]) -> list[SubjectOutcome]:
    """One outcome: 1.0 if all passed, 0.0 if one failed; else what kept one from being scored."""
    outcomes = [decide_without_judge(outcome) for _, outcome in seen]
    findings = [f for outcome in outcomes if not isinstance(outcome, Errored) for f in outcome.findings]
    if any(isinstance(outcome, Scored) and not outcome.passed for outcome in outcomes):
        return [(WHOLE, build_failure(0.0, *findings))]
    open_ones = [outcome for outcome in outcomes if not isinstance(outcome, Scored) and not _is_free(outcome)]
    if open_ones:
        return [(WHOLE, open_ones[0])]
    scored = any(isinstance(outcome, Scored) for outcome in outcomes)
    return [(WHOLE, Scored(1.0, True, tuple(findings)))] if scored else list(seen)


def _is_free(outcome: Outcome) -> bool:
    return isinstance(outcome, Skipped) and outcome.cause == "not_applicable"


def find_hidden_arguments(case: Case) -> Skipped | None:
    """The outcome of a system that compares all arguments, where the trace does not tell those of a call."""
    return None if all(step.call.captured for step in case.trace.steps) else NOT_TOLD


def spend_on_pairs(case: Case, *, each: int) -> None:
    """Counts a look at every pair of an expected call and one made, each as so many comparisons."""
    case.meter.spend("comparisons", each * len(case.expected_calls) * len(case.trace.steps))


class PatternFit(NamedTuple):
    """Whether a call meets a pattern of its tool: what speaks against it; where nothing does, what could not be compared."""

    findings: tuple[Finding, ...] = ()
    open: Skipped | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.findings and self.open is None


FITS = PatternFit()


def fit_pattern(case: Case, pattern: CallPattern, step: Step, *, extra: bool) -> PatternFit:
    """Whether the arguments of a call are the pattern's, and, unless `extra` is fine, no others; names are not compared."""
    if pattern.args is None:
        return FITS
    given = step.call.arguments
    if given is None:
        return PatternFit((build_unparsable(step),)) if step.call.captured else PatternFit((), NOT_TOLD)
    path = f"{build_call_path(step)}/arguments"
    findings: list[Finding] = []
    left: Skipped | None = None
    for one in bind_arguments(case, pattern):
        if one.name not in given:
            if not one.optional:
                findings.append(Finding("missing_argument", f"{one.name}: missing", f"{path}/{escape_token(one.name)}"))
            continue
        match = one.match(given[one.name])
        if isinstance(match, OpenComparison):
            left = left or Skipped(match.cause, f"{one.name}: {match.reason}")
        elif not match.passed:
            findings.append(Finding("wrong_argument", f"{one.name}: {match.note}", f"{path}/{escape_token(one.name)}"))
    beside = [] if extra else [name for name in given if name not in pattern.args]
    findings += [Finding("extra_argument", f"{name}: not expected", f"{path}/{escape_token(name)}") for name in beside]
    return PatternFit(tuple(findings)) if findings else PatternFit((), left) if left else FITS


def fits(case: Case, pattern: CallPattern, step: Step, *, extra: bool) -> bool:
    """The same without saying why not, which is what costs."""
    given = step.call.arguments
    if pattern.args is None or given is None:
        return pattern.args is None
    for one in bind_arguments(case, pattern):
        if one.name not in given:
            if not one.optional:
                return False
            continue
        match = one.match(given[one.name])
        if isinstance(match, OpenComparison) or not match.passed:
            return False
    return extra or given.keys() <= pattern.args.keys()


def bind_arguments(case: Case, pattern: CallPattern) -> list[BoundArgument]:
    """The expected arguments with their matchers."""
    return case.once(("bound", id(pattern)), lambda: [bind(n, v, critics={}) for n, v in (pattern.args or {}).items()])

"""What the gates that carry a published method share: the other system's number beside ours, and plain values for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.binding import Bound, bind
from service.core.case import Case, call_path
from service.core.checks import WHOLE, Check, Seen, Subject
from service.core.critics import Critic, Exact, Uncompared
from service.core.expect import CallPattern
from service.core.gates.schema import unparsable
from service.core.gates.tool_name import NO_CALLS
from service.core.outcome import PERFECT, Carried, Errored, Finding, Outcome, Scored, Skipped, failed
from service.core.partial import decided
from service.core.pointers import escaped
from service.core.shapes import Template, has_matcher
from service.core.trace import Step
from service.errors import InputError


def carried(check: Check, case: Case, raw: float, *, system: str, why: str) -> Carried:
    """The system's own number, with our findings and, where our number is another, one that says so and why."""
    strict = case.once("strict", lambda: Case(case.trace, case.expectation, case.matching.strict()))
    outcomes = [outcome for _, outcome in check.look(strict)]
    values = [outcome.value for outcome in outcomes if isinstance(outcome, Scored)]
    ours = fsum(values) / len(values) if values else None
    findings = [f for outcome in outcomes if not isinstance(outcome, Errored) for f in outcome.findings]
    if ours is None or abs(ours - raw) > 1e-9:
        number = "no number" if ours is None else f"{ours:.6g}"
        message = f"{system} gives {raw:.6g}, callgrade {number}: {why}"
        findings.append(Finding("compat_differs", message, "/steps"))
    return Carried(value=raw, passed=raw == 1.0, findings=tuple(findings), raw=raw)


def plain_args(path: str, pattern: CallPattern, system: str) -> dict[str, JsonValue]:
    """The expected arguments as values, for a system without matchers. InputError where there is a matcher but `exact`."""
    args = pattern.args or {}
    return {name: plain(f"{path}/args/{escaped(name)}", value, system) for name, value in args.items()}


def plain(path: str, value: Template, system: str) -> JsonValue:
    """An expected value for a system without matchers. InputError for a matcher that is not `exact`."""
    if isinstance(value, Exact):
        return value.value
    if isinstance(value, Critic) or has_matcher(value):
        raise InputError.at(path, f"{system} compares with values alone: a value, or exact")
    return cast("JsonValue", value)


def with_idle(seen: Iterable[Seen], case: Case) -> list[Seen]:
    """The outcomes with those of every scope in which nothing is to be called: 1.0 where nothing was, else 0.0."""
    kept = [one for one in seen if one[1] is not NO_CALLS]
    return [*kept, *_idle(case)] or [(WHOLE, NO_CALLS)]


def _idle(case: Case) -> Iterable[Seen]:
    for _, scope, turn in case.scopes:
        if scope.no_calls:
            steps = case.steps_of(turn)
            over = [
                Finding("over_call", f"{s.call.name} was called where no call was due", call_path(s)) for s in steps
            ]
            yield Subject(turn=turn), failed(0.0, *over) if over else PERFECT


def all_or_nothing(seen: Sequence[Seen]) -> list[Seen]:
    """One outcome: 1.0 if all passed, 0.0 if one failed; else what kept one from being scored."""
    outcomes = [decided(outcome) for _, outcome in seen]
    findings = [f for outcome in outcomes if not isinstance(outcome, Errored) for f in outcome.findings]
    if any(isinstance(outcome, Scored) and not outcome.passed for outcome in outcomes):
        return [(WHOLE, failed(0.0, *findings))]
    open_ones = [outcome for outcome in outcomes if not isinstance(outcome, Scored) and not _is_free(outcome)]
    if open_ones:
        return [(WHOLE, open_ones[0])]
    scored = any(isinstance(outcome, Scored) for outcome in outcomes)
    return [(WHOLE, Scored(1.0, True, tuple(findings)))] if scored else list(seen)


def _is_free(outcome: Outcome) -> bool:
    return isinstance(outcome, Skipped) and outcome.cause == "not_applicable"


def spend_on_pairs(case: Case, *, each: int) -> None:
    """Counts a look at every pair of an expected call and one made, each as so many comparisons."""
    case.meter.spend("comparisons", each * len(case.wanted) * len(case.trace.steps))


class Fit(NamedTuple):
    """Whether a call meets a pattern of its tool: what speaks against it, and what could not be compared."""

    findings: tuple[Finding, ...] = ()
    uncompared: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.findings and not self.uncompared


FITS = Fit()


def fit(case: Case, pattern: CallPattern, step: Step, *, extra: bool) -> Fit:
    """Whether the arguments of a call are the pattern's, and, unless `extra` is fine, no others; names are not compared."""
    if pattern.args is None:
        return FITS
    given = step.call.arguments
    if given is None:
        return Fit((unparsable(step),))
    path = f"{call_path(step)}/arguments"
    findings: list[Finding] = []
    for one in bound_of(case, pattern):
        if one.name not in given:
            if not one.optional:
                findings.append(Finding("missing_argument", f"{one.name}: missing", f"{path}/{escaped(one.name)}"))
            continue
        match = one.match(given[one.name])
        if isinstance(match, Uncompared):
            return Fit((), f"{one.name}: {match.reason}")
        if not match.passed:
            findings.append(Finding("wrong_argument", f"{one.name}: {match.note}", f"{path}/{escaped(one.name)}"))
    beside = [] if extra else [name for name in given if name not in pattern.args]
    findings += [Finding("extra_argument", f"{name}: not expected", f"{path}/{escaped(name)}") for name in beside]
    return Fit(tuple(findings)) if findings else FITS


def fits(case: Case, pattern: CallPattern, step: Step, *, extra: bool) -> bool:
    """The same without saying why not, which is what costs."""
    given = step.call.arguments
    if pattern.args is None or given is None:
        return pattern.args is None
    for one in bound_of(case, pattern):
        if one.name not in given:
            if not one.optional:
                return False
            continue
        match = one.match(given[one.name], explain=False)
        if isinstance(match, Uncompared) or not match.passed:
            return False
    return extra or given.keys() <= pattern.args.keys()


def bound_of(case: Case, pattern: CallPattern) -> list[Bound]:
    """The expected arguments with their matchers."""
    return case.once(("bound", id(pattern)), lambda: [bind(n, v, critics={}) for n, v in (pattern.args or {}).items()])

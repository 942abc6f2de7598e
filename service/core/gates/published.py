"""What the checks of published methods share: how a call fits a pattern, and the other system's number beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import ClassVar, cast

from pydantic import JsonValue

from service.core.alignment.binding import BoundArgument, bind
from service.core.alignment.chain import Fits, Pairs
from service.core.case import Case, Pair, build_call_path
from service.core.checks import WHOLE, Check, Subject, SubjectOutcome
from service.core.critics import Exact, Match, OpenComparison
from service.core.expectations.expectation import CallPattern
from service.core.expectations.templates import Template, has_matcher
from service.core.gates.decide import score_idle
from service.core.gates.schema import build_unparsable, explain_gap
from service.core.gates.state import StateGate
from service.core.gates.tool_name import NO_CALLS, score_name
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

MISSING = Match(0.0, False, "missing")
"""The match of an argument that should be there and is not."""


class PublishedCheck(Check):
    """A published method as we read it and, where the rubric says `compat`, as the system's own code computes it."""

    has_own_number: ClassVar[bool] = True
    system: ClassVar[str]
    """Whose method it is."""
    places: ClassVar[int | None] = None
    """The number of decimal places that the system rounds to."""

    def give_own_number(self, case: Case, raw: float, why: str) -> list[SubjectOutcome]:
        """Give the system's own number, our findings and, where our number differs, a finding that says why."""
        ours, findings = self.compute_ours(case)
        if ours is None or abs(ours - raw) > 1e-9:
            number = "no number" if ours is None else f"{ours:.6g}"
            if self.places is not None and ours is not None and round(ours, self.places) == raw:
                why = f"it rounds to {self.places} places"
            message = f"{self.system} gives {raw:.6g}, callgrade {number}: {why}"
            findings.append(Finding("compat_differs", message, "/steps"))
        return [(WHOLE, MethodScore(value=raw, passed=raw == 1.0, findings=tuple(findings), raw=raw))]

    def compute_ours(self, case: Case) -> tuple[float | None, list[Finding]]:
        """Return our own number, None where there is none, and our findings."""
        strict = case.once("strict", lambda: Case(case.trace, case.expectation, replace(case.matching, compat=False)))
        try:
            outcomes = [outcome for _, outcome in self.look(strict)]
        except InputError:  # we refuse this input, but theirs scores it
            return None, []
        values = [outcome.value for outcome in outcomes if isinstance(outcome, Scored)]
        findings = [f for outcome in outcomes if not isinstance(outcome, Errored) for f in outcome.findings]
        return fsum(values) / len(values) if values else None, findings

    def list_plain_calls(self, case: Case) -> list[tuple[str, dict[str, JsonValue]]]:
        """List the tool and the arguments of every expected call, for a system without matchers."""
        return [
            (one.tool, {n: self.read_plain(f"{at}/args/{escape_token(n)}", v) for n, v in (one.args or {}).items()})
            for at, one in list_patterns(case)
        ]

    def read_plain(self, path: str, value: Template) -> JsonValue:
        """Return an expected value for a system without matchers. Raise InputError for any matcher but `exact`."""
        if isinstance(value, Exact):
            return value.value
        if has_matcher(value):
            raise InputError.at(path, f"{self.system} compares with values alone: a value, or exact")
        return cast("JsonValue", value)


class FittingCheck(PublishedCheck):
    """A published method to which a call with the expected arguments is right and any other wrong."""

    def allows_extra(self, pattern: CallPattern) -> bool:
        """Whether arguments beyond the pattern's are allowed."""
        return pattern.extra_args == "allow"

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """Return 1.0 if the call has the pattern's arguments, else 0.0."""
        return float(not any(True for _ in _find_faults(case, pattern, step, extra=self.allows_extra(pattern))))

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:
        """Whether every argument is compared by equality, with no matcher."""
        return all(bound.critic is None for bound in bind_arguments(case, pattern))

    def score_fit(self, case: Case, pair: Pair) -> Outcome:
        """Score a pair: 1.0 if the call is of the expected tool and has the pattern's arguments."""
        right_tool, step = score_name(case, pair), case.trace.steps[pair.step]
        if not right_tool.passed:
            return right_tool
        return fit_pattern(case, pair.pattern, step, extra=self.allows_extra(pair.pattern))


def list_patterns(case: Case) -> list[tuple[str, CallPattern]]:
    """List the pointer and the pattern of every expected call; of several alternatives, the first."""
    return [expected_call.options[0] for expected_call in case.expected_calls]


def fit_pattern(case: Case, pattern: CallPattern, step: Step, *, extra: bool) -> Outcome:
    """Score a call by a pattern of its tool: 1.0, or 0.0 with every fault; open if the rest fits, but not all can be compared."""
    faults = list(_find_faults(case, pattern, step, extra=extra))
    findings = [one for one in faults if isinstance(one, Finding)]
    open_ones = [one for one in faults if isinstance(one, Skipped)]
    return build_failure(0.0, *findings) if findings else next(iter(open_ones), PERFECT)


def _find_faults(case: Case, pattern: CallPattern, step: Step, *, extra: bool) -> Iterator[Finding | Skipped]:
    """Yield what is wrong with the arguments, and what cannot be compared. Unless `extra`, other arguments are wrong."""
    actual = step.call.arguments
    if pattern.args is None:
        return
    if actual is None:
        yield build_unparsable(step) if step.call.captured else explain_gap(step)
        return
    for one, match in match_arguments(case, pattern, actual):
        if isinstance(match, OpenComparison):
            yield Skipped(match.cause, f"{one.name}: {match.reason}")
        elif not match.passed:
            yield note_argument(step, one.name, match)
    for name in () if extra else actual:
        if name not in pattern.args:
            yield note_argument(step, name)


def match_arguments(
    case: Case, pattern: CallPattern, actual: Mapping[str, JsonValue]
) -> Iterator[tuple[BoundArgument, Match | OpenComparison]]:
    """Compare the expected arguments with the call's, but for those that may be absent and are."""
    for one in bind_arguments(case, pattern):
        if one.name in actual:
            yield one, one.match(actual[one.name])
        elif not one.optional:
            yield one, MISSING


def bind_arguments(case: Case, pattern: CallPattern) -> list[BoundArgument]:
    """Bind the expected arguments of a pattern to their matchers."""
    return case.once(("bound", id(pattern)), lambda: [bind(n, v, critics={}) for n, v in (pattern.args or {}).items()])


def note_argument(step: Step, name: str, match: Match | None = None) -> Finding:
    """Build the finding against an argument: missing, wrong or, without a match, not expected."""
    code = "extra_argument" if match is None else "missing_argument" if match is MISSING else "wrong_argument"
    note = match.note if match else "not expected"
    return Finding(code, f"{name}: {note}", f"{build_call_path(step)}/arguments/{escape_token(name)}")


def pair_greedily(expected: Iterable[int], calls: Iterable[int], fits: Fits) -> Pairs:
    """Give each expected call the first free call that fits, for good: it may take a later one's only call.

    >>> pair_greedily([0, 1], [0, 1], lambda expected, call: expected == 0 or call == 0)
    {0: 0}
    """
    free, pairs = list(calls), Pairs()
    for n in expected:
        first = next((call for call in free if fits(n, call)), None)
        if first is not None:
            free.remove(first)
            pairs[n] = first
    return pairs


def add_idle_outcomes(outcomes: Iterable[SubjectOutcome], case: Case) -> list[SubjectOutcome]:
    """Add an outcome for every scope that expects no call: 1.0 where none was made, else 0.0."""
    idle = [turn for _, scope, turn in case.scopes if scope.no_calls]
    found = [one for one in outcomes if one[1] is not NO_CALLS]
    return [*found, *[(Subject(turn=turn), score_idle(case.find_steps(turn))) for turn in idle]] or [(WHOLE, NO_CALLS)]


def fold_all_or_nothing(subject_outcomes: Sequence[SubjectOutcome]) -> list[SubjectOutcome]:
    """Fold into one outcome: 1.0 if all passed, 0.0 if one failed, else the first that is open."""
    outcomes = [decide_without_judge(outcome) for _, outcome in subject_outcomes]
    findings = [f for outcome in outcomes if not isinstance(outcome, Errored) for f in outcome.findings]
    scores = [outcome for outcome in outcomes if isinstance(outcome, Scored)]
    if not all(score.passed for score in scores):
        return [(WHOLE, build_failure(0.0, *findings))]
    others = [outcome for outcome in outcomes if not isinstance(outcome, Scored)]
    open_one = next((one for one in others if one.cause != "not_applicable"), None)
    if open_one is not None:
        return [(WHOLE, open_one)]
    return [(WHOLE, Scored(1.0, True, tuple(findings)))] if scores else list(subject_outcomes)


def score_state(case: Case, same: Callable[[JsonValue, JsonValue], bool]) -> Outcome:
    """Score whether the final state is the expected one; with `compat` by `same`, where both are whole states.

    Where parts are ignored, or changes are expected, our own comparison counts.
    """
    outcome = StateGate(mode="exact").compare_states(case)
    expected = case.expectation.state if case.expectation else None
    if not (case.matching.compat and isinstance(outcome, Scored)) or expected is None or case.trace.state is None:
        return outcome
    if expected.changes is not None or expected.ignore or expected.keys:
        return outcome
    return PERFECT if same(case.trace.state.final, expected.final) else build_failure(0.0)


def read_gold(case: Case, form: str) -> Mapping[str, JsonValue]:
    """Return the gold if it has this format, else an empty object."""
    gold = (case.expectation.gold if case.expectation else None) or {}
    return gold if gold.get("format") == form else {}


def make_floats(value: JsonValue, *, tag: bool = False) -> JsonValue:
    """Return the value with every whole number as a float, as systems that compare these do; `tag`: still unlike a float.

    >>> make_floats({"a": [1, True, "1"]}), make_floats(1, tag=True)
    ({'a': [1.0, True, '1']}, {'integer': 1.0})
    """
    if isinstance(value, dict):
        return {key: make_floats(item, tag=tag) for key, item in value.items()}
    if isinstance(value, list):
        return [make_floats(item, tag=tag) for item in value]
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    try:
        return {"integer": float(value)} if tag else float(value)
    except OverflowError:
        return value


def get_mapping(value: object) -> Mapping[str, JsonValue]:
    """Return the value if it is an object, else an empty object."""
    return cast("Mapping[str, JsonValue]", value) if isinstance(value, Mapping) else {}


def list_properties(schema: object) -> Mapping[str, JsonValue]:
    """Return what a JSON Schema declares, by name."""
    return get_mapping(get_mapping(schema).get("properties"))


def explain_hidden_arguments(case: Case) -> Skipped | None:
    """Return why a system that compares all arguments cannot score the trace: it lacks those of a call. None: it lacks none."""
    return next((explain_gap(step) for step in case.trace.steps if not step.call.captured), None)


def spend_on_pairs(case: Case, *, each: int) -> None:
    """Charge the budget for a look at every pair of an expected and an actual call, at `each` comparisons a pair."""
    case.meter.spend("comparisons", each * len(case.expected_calls) * len(case.trace.steps))

"""A trace and what was expected of it, as the checks see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, TypeVar

from pydantic import JsonValue

from service.core.alignment.assignment import FEW_PAIRS, Alignment, Pair, align, align_in_order
from service.core.alignment.comparisons import Comparisons
from service.core.alignment.tries import fold_tries
from service.core.checks import Aspect, Check, build_subject
from service.core.critics import Match
from service.core.expectations.expectation import EMPTY_LISTING, CallPattern, Expectation, ExpectedCall, Scope
from service.core.expectations.result_match import match_result
from service.core.expectations.templates import find_cost, has_matcher
from service.core.json.parsing import read_structure
from service.core.models.light import lazy
from service.core.outcome import Finding, Outcome, Scored, Skipped, build_failure
from service.core.schemas import Dialect, SchemaProblem, Validator, build_validator
from service.core.trace import Message, Step, ToolDef, Trace
from service.core.work_limits import Meter

__all__ = ["Alignment", "Case", "Matching", "Pair", "build_call_path", "fold_name"]

T = TypeVar("T")

RESULT_WORTH = 1e-4
"""What a matching result adds to a pair: less than any difference in arguments that a rubric can see."""


FREE_ARGUMENTS_WORTH = 1.0 - 1e-5
"""What arguments that may be anything, or that only a judge can compare, add to a pair: one that fits exactly goes first."""


@dataclass(frozen=True)
class Matching:
    """The rubric's rules for pairing expected with actual calls, and for calls that match none."""

    arguments: Check
    """The check whose pair score the assignment maximises among calls of the same name."""
    fold_names: bool = False
    extra_calls: Literal["count", "allow"] = "count"
    failed_tries: Literal["fold", "count"] = "fold"
    compat: bool = False
    fail_threshold: float = 0.8
    """The rubric's thresholds, for published methods that use them."""
    warn_threshold: float = 0.9

    @lazy
    def cost(self) -> int:
        """The cost of the most expensive matcher in the rubric."""
        check = self.arguments
        return find_cost([getattr(check, name) for name in type(check).model_fields])


_NO_ASPECTS: frozenset[Aspect] = frozenset()


class PlacedValue(NamedTuple):
    """A value in the trace and its pointer."""

    path: str
    value: JsonValue


class Case:
    """A trace and what was expected of it. Computes once what several checks need: eagerly what all of them use."""

    def __init__(self, trace: Trace, expectation: Expectation | None, matching: Matching) -> None:
        listing = EMPTY_LISTING if expectation is None else expectation.list_sections()
        calls = len(trace.steps)
        self.trace = trace
        self.expectation = expectation
        self.listing = listing
        self.matching = matching
        self.scopes = listing.scopes
        """What the expectation says about the whole trace and about single turns: pointer, scope, turn."""
        self.expected_calls = listing.expected_calls
        """The calls that should or may have been made."""
        self.lists_calls = listing.lists_calls
        """Whether the expectation says which calls are right, so that calls can be checked against it."""
        self.subjects = tuple([build_subject(step.index, step.turn) for step in trace.steps])
        """The subject of each step."""
        self.find_tool = trace.index_tools()
        """Finds the tool that a step calls, if it was ever on offer to its agent."""
        self.has_few_pairs = calls * len(listing.expected_calls) <= FEW_PAIRS
        """Whether there are few enough pairs to compare each one; with more, comparisons are counted."""
        self.meter = Meter(calls=calls)
        """The work done so far, against the limits for one item."""
        self.memo: dict[object, object] = {}
        """Results computed so far, by keys that the callers choose."""
        self._schemas: dict[tuple[str | None, str], Validator | None] = {}

    @lazy
    def output(self) -> PlacedValue | None:
        """The run's output, else its answer (parsed if it is a JSON object or array); None if the trace has neither."""
        given, answer = self.trace.output, self.trace.answer
        if given is not None and given.captured:
            return PlacedValue("/output", given.content)
        return None if answer is None else PlacedValue("/answer", read_structure(answer))

    def once(self, key: object, make: Callable[[], T]) -> T:
        """Return the value under this key, made by `make` the first time."""
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]  # pyright: ignore[reportReturnType] (what `make` gave)

    @lazy
    def other_aspects(self) -> frozenset[Aspect]:
        """What the expectation says beyond which calls are right and with which arguments; for most, nothing."""
        if self.expectation is None:
            return _NO_ASPECTS
        said: set[Aspect] = set()
        if self.expectation.state is not None:
            said.add("state")
        if self.expectation.says_output:
            said.add("output")
        for section in self.listing.sections:
            scope = section.scope
            if (
                scope.ordered
                or scope.disallowed
                or scope.allowed is not None
                or scope.counts
                or scope.answer is not None
                or scope.said is not None
            ):
                said |= {"order", "disallowed", "counts", "answer", "said"}
            for wanted in section.expected_calls:
                for _, pattern in wanted.options:
                    if "result" in pattern.__pydantic_fields_set__:  # (as `says_result`)
                        said.add("result")
        return frozenset(said) if said else _NO_ASPECTS

    def find_offered_tool(self, step: Step) -> ToolDef | None:
        """Return the tool that a step calls, if it was on offer by then."""
        came = self.trace.find_catalogue(step.agent).offers.get(step.call.name)
        return self.find_tool(step) if came is None or came.step <= step.index else None

    def find_validator(self, step: Step) -> Validator | None:
        """Return the validator of the tool that a step calls, or None if the tool has no usable schema."""
        name = step.agent, step.call.name
        if name not in self._schemas:
            tool = self.find_tool(step)
            try:
                self._schemas[name] = self.compile_schema(tool) if tool and tool.parameters is not None else None
            except SchemaProblem:
                self._schemas[name] = None
        return self._schemas[name]

    def compile_schema(self, tool: ToolDef, dialect: Dialect = "auto", *, formats: bool = True) -> Validator:
        """Return the validator of a tool's parameters. Raises SchemaProblem if the schema cannot be used."""
        kept = tool.memo.get((dialect, formats))
        if kept is None:
            kept = tool.memo[dialect, formats] = build_validator(tool.parameters, dialect=dialect, formats=formats)
        return kept  # pyright: ignore[reportReturnType] (what `build_validator` gave)

    def is_same_name(self, expected: str, actual: str) -> bool:
        """Whether two tool names are the same under the rubric's rules."""
        return expected == actual or (self.matching.fold_names and fold_name(expected) == fold_name(actual))

    def make_name_key(self, name: str) -> str:
        """Return a key that is equal for names that are the same."""
        return fold_name(name) if self.matching.fold_names else name

    def is_named(self, pattern: str, name: str, but: Sequence[str] = ()) -> bool:
        """Whether a name, or a pattern of names, stands for this tool under the rubric's rules, and none of the others does."""
        key = self.make_name_key(name)
        named = names_tool(self.make_name_key(pattern), key)
        return named and not any(names_tool(self.make_name_key(other), key) for other in but)

    def find_named_steps(self, pattern: str, but: Sequence[str] = ()) -> Sequence[int]:
        """Return the steps that call a tool of this name or pattern of names, but none of the others."""
        if not but and not is_name_pattern(pattern):
            return self.comparisons.find_steps(pattern)
        return self.once(("named steps", pattern, *but), lambda: self._find_named_steps(pattern, but))

    def _find_named_steps(self, pattern: str, but: Sequence[str]) -> Sequence[int]:
        made = self.comparisons.steps_by_tool
        self.meter.spend("comparisons", 4 * len(made) * (1 + len(but)))
        return sorted([j for name in made if self.is_named(pattern, name, but) for j in made[name]])

    def explain_missing_turn(self, turn: int | None) -> Skipped | None:
        """Return why a turn cannot be scored if the trace does not have it, else None."""
        if turn is None or 1 <= turn <= self.trace.turns or (turn == 0 and self.find_steps(0)):
            return None
        return Skipped("not_captured", f"the trace has no turn {turn}; it has {self.trace.turns}, counted from 1")

    def find_steps(self, turn: int | None) -> tuple[Step, ...]:
        """Return the steps of a turn, or all steps if `turn` is None."""
        return self.trace.steps if turn is None else self._steps_by_turn.get(turn, ())

    @lazy
    def _steps_by_turn(self) -> Mapping[int, tuple[Step, ...]]:
        found: dict[int, list[Step]] = {}
        for step in self.trace.steps:
            found.setdefault(step.turn, []).append(step)
        return {turn: tuple(steps) for turn, steps in found.items()}

    @lazy
    def active_turns(self) -> Sequence[int]:
        """The turns in which the model made a call or wrote a text."""
        acted = {step.turn for step in self.trace.steps}
        spoke = {one.turn for one in self.trace.messages if one.role == "assistant" and one.text}
        return sorted(acted | spoke)

    def find_messages(self, turn: int | None) -> Sequence[tuple[int, Message]]:
        """Return the messages of a turn with their positions, or all messages if `turn` is None."""
        return self._messages_by_turn.get(turn, ())

    @lazy
    def _messages_by_turn(self) -> Mapping[int | None, Sequence[tuple[int, Message]]]:
        found: dict[int | None, list[tuple[int, Message]]] = {None: list(enumerate(self.trace.messages))}
        for n, message in enumerate(self.trace.messages):
            found.setdefault(message.turn, []).append((n, message))
        return found

    @lazy
    def alignment(self) -> Alignment:
        """The optimal one-to-one alignment, within the work limits; if the rubric folds failed tries, without them."""
        found = align_in_order(self)
        return fold_tries(self, align(self)) if found is None else found

    @lazy
    def comparisons(self) -> Comparisons:
        """How calls compare where there are many, within the work limits."""
        return Comparisons(self)

    def is_plain(self, pattern: CallPattern) -> bool:
        """Whether a pattern is compared with a call by typed equality alone."""
        return self.matching.arguments.is_plain(self, pattern) and not has_matcher(pattern.result)

    def find_cost(self, pattern: CallPattern) -> int:
        """Return what comparing one of the pattern's values costs; by equality, 1."""
        return max(find_cost([pattern.args, pattern.result]), self.matching.cost)

    def agrees(self, pattern: CallPattern, step: Step) -> bool:
        """Whether a call's arguments fully match the pattern."""
        return pattern.args is None or self._score_pair(pattern, step) >= FREE_ARGUMENTS_WORTH

    def accepts(self, pattern: CallPattern, step: Step) -> bool:
        """Whether a call's arguments pass for the pattern, if not in full."""
        return pattern.args is None or self.matching.arguments.accepts_pair(self, pattern, step)

    def fits(self, pattern: CallPattern, step: Step) -> bool:
        """Whether a call's arguments and result pass for the pattern; what only a judge can compare is taken as right."""
        if not self.accepts(pattern, step):
            return False
        if not pattern.says_result:
            return True
        match = None if step.result is None else match_result(pattern.result, step.result.content)
        return match is not None and (not isinstance(match, Match) or match.passed)

    def compute_worth(self, pattern: CallPattern, step: Step) -> float:
        """Return what pairing a pattern with a step of the same name is worth: by arguments, then by result."""
        arguments = self._score_pair(pattern, step)
        return arguments + (RESULT_WORTH * _score_result(pattern, step) if pattern.says_result else 0.0)

    def _score_pair(self, pattern: CallPattern, step: Step) -> float:
        """Score a pair once: the alignment needs the score, and so does the search for matching steps."""
        key = ("pair", id(pattern), step.index)
        if key not in self.memo:
            self.memo[key] = self.matching.arguments.score_pair(self, pattern, step)
        return self.memo[key]  # pyright: ignore[reportReturnType] (what `score_pair` gave)

    def find_matching_steps(self, expected: int) -> frozenset[int]:
        """Return the steps that match an expected call by tool, turn and arguments. Raises OverBudgetError over the limit."""
        return self.once(("meeting", expected), lambda: self._find_matching_steps(expected))

    def find_candidate_steps(self, expected: int) -> frozenset[int]:
        """Return the steps that match an expected call by tool and turn."""
        wanted = self.expected_calls[expected]
        due = frozenset([(self.make_name_key(p.tool), p.turn, wanted.turn) for _, p in wanted.options])
        return self.once(("naming", due), lambda: self._find_candidate_steps(wanted))

    def _find_candidate_steps(self, wanted: ExpectedCall) -> frozenset[int]:
        found: set[int] = set()
        for _, pattern in wanted.options:
            made = self.comparisons.find_steps(pattern.tool)
            found.update([j for j in made if wanted.is_in_turn(pattern, self.trace.steps[j].turn)])
        self.meter.spend("comparisons", len(found))
        return frozenset(found)

    def _find_matching_steps(self, expected: int) -> frozenset[int]:
        wanted, steps = self.expected_calls[expected], self.trace.steps
        if all(pattern.args is None for _, pattern in wanted.options):
            return self.find_candidate_steps(expected)
        found: set[int] = set()
        for _, pattern in wanted.options:
            named = self.comparisons.find_steps(pattern.tool)
            if not self.has_few_pairs and pattern.args is not None:
                named = self.comparisons.find_agreeing(pattern)
            elif pattern.args is not None:
                named = [j for j in named if self.agrees(pattern, steps[j])]
            found.update([j for j in named if wanted.is_in_turn(pattern, steps[j].turn)])
        self.meter.spend("comparisons", len(found))
        return frozenset(found)

    @lazy
    def chargeable_steps(self) -> frozenset[int]:
        """The steps that would count as unexpected if they matched no expected call."""
        return frozenset([step.index for step in self.trace.steps if isinstance(self.score_unexpected(step), Scored)])

    def score_unexpected(self, step: Step) -> Outcome | None:
        """Return the outcome of an unmatched call for a check that scores calls; None if such calls do not count."""
        return self.once(("unexpected", step.index), lambda: self._score_unexpected(step))

    def _score_unexpected(self, step: Step) -> Outcome | None:
        if not self.once(("charges", step.turn), lambda: self._counts_extra_calls(step.turn)):
            return None
        counted = ("counted", step.turn, step.call.name)
        if not self.expected_calls and self.once(counted, lambda: self._is_counted(step)):
            return None
        tool = self.find_tool(step)
        if tool is not None and tool.read_only:
            finding = Finding("extra_read", f"{step.call.name} was not expected; it only reads", build_call_path(step))
            return Skipped("not_applicable", "an unexpected call that only reads", (finding,))
        return build_failure(0.0, Finding("extra_call", f"{step.call.name} was not expected", build_call_path(step)))

    def find_scopes(self, turn: int) -> tuple[Scope, ...]:
        """Return what the expectation says about the whole trace and about this turn."""
        return self._scopes_by_turn.get(None, ()) + self._scopes_by_turn.get(turn, ())

    @lazy
    def _scopes_by_turn(self) -> Mapping[int | None, tuple[Scope, ...]]:
        found: dict[int | None, tuple[Scope, ...]] = {}
        for _, scope, turn in self.scopes:
            found[turn] = (*found.get(turn, ()), scope)
        return found

    def _counts_extra_calls(self, turn: int) -> bool:
        """Whether a call that is not listed counts as unexpected: the turn decides, else the trace, else the rubric."""
        scopes = self.find_scopes(turn)
        said = [scope.allow_extra for scope in scopes if scope.allow_extra is not None]
        allowed = said[-1] if said else self.matching.extra_calls == "allow"
        return not allowed and any(scope.lists_calls for scope in scopes)

    def _is_counted(self, step: Step) -> bool:
        """Whether `counts` are all that says which tools may be called, and name this one."""
        scopes = self.find_scopes(step.turn)
        if any(scope.calls not in (None, "some") for scope in scopes):
            return False
        return any(self.is_named(tool, step.call.name) for scope in scopes for tool in scope.counts)


def _score_result(pattern: CallPattern, step: Step) -> float:
    if step.result is None:
        return 0.0
    match = match_result(pattern.result, step.result.content)
    return match.value if isinstance(match, Match) else 0.0


def fold_name(name: str) -> str:
    """Fold case and treat `-`, `_` and `.` alike in a tool name.

    >>> fold_name("Math.Add-Up")
    'math_add_up'
    """
    return name.casefold().replace("-", "_").replace(".", "_")


def is_name_pattern(name: str) -> bool:
    """Whether a tool's name in an expectation is a pattern, with `*` or `?` as in file names."""
    return "*" in name or "?" in name


def names_tool(pattern: str, name: str) -> bool:
    """Whether a name, or a pattern of names, stands for this tool.

    >>> names_tool("delete_*", "delete_account"), names_tool("get_x", "get_y")
    (True, False)
    """
    return pattern == name or (is_name_pattern(pattern) and fnmatchcase(name, pattern))


def build_call_path(step: Step) -> str:
    """Return the pointer of a step's call."""
    return f"/steps/{step.index}/call"

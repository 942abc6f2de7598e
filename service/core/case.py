"""A trace with what was expected of it, as the checks see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar, cast

from service.core.checks import Check, Subject
from service.core.critics import Match
from service.core.expect import CallPattern, Expectation, Scope, Wanted
from service.core.lazy import lazy
from service.core.match import assign
from service.core.outcome import Finding, Outcome, Scored, Skipped, failed
from service.core.schemas import Dialect, SchemaProblem, Validator, validator
from service.core.shapes import matcher_of
from service.core.trace import Step, ToolDef, Trace

T = TypeVar("T")

BY_RESULT = 1e-4
"""What a fitting result is worth: less than any difference of arguments that a rubric would see."""

IN_ITS_PLACE = 1e-6
"""What pairing a required call with one of another tool is worth: more than nothing, less than anything else."""


class Pair(NamedTuple):
    """An expected call and the actual one that stands for it, with the option it was taken for."""

    expected: int
    step: int
    path: str
    pattern: CallPattern


class Alignment(NamedTuple):
    """Which actual call stands for which expected one, one to one."""

    pairs: tuple[Pair, ...]
    """By expected call."""
    missing: tuple[int, ...]
    """Required calls that no call stands for."""
    extra: tuple[int, ...]
    """Steps that stand for no expected call."""


@dataclass(frozen=True)
class Matching:
    """How expected and actual calls are paired, and what a call too many does. Part of the rubric."""

    arguments: Check
    """The check whose score of a pair the assignment maximises, names being equal."""
    fold_names: bool = False
    extra_calls: Literal["count", "allow"] = "count"
    compat: bool = False

    def strict(self) -> Matching:
        """The same without compatibility: our own number."""
        return replace(self, compat=False)


@dataclass(frozen=True)
class Case:
    """A trace with what was expected of it. What checks share is worked out here, once."""

    trace: Trace
    expectation: Expectation | None
    matching: Matching
    _memo: dict[object, object] = field(default_factory=dict[object, object])
    _schemas: dict[str, Validator | None] = field(default_factory=dict[str, "Validator | None"])

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` gave the first time it was asked for under this key."""
        if key not in self._memo:
            self._memo[key] = make()
        return cast("T", self._memo[key])

    @lazy
    def scopes(self) -> tuple[tuple[str, Scope, int | None], ...]:
        """What is said of the trace as a whole and of single turns: pointer, scope, turn."""
        return tuple(self.expectation.scopes()) if self.expectation else ()

    @lazy
    def wanted(self) -> tuple[Wanted, ...]:
        """The calls that should or may have been made."""
        return tuple([wanted for path, scope, turn in self.scopes for wanted in scope.wanted(path, turn)])

    @lazy
    def lists_calls(self) -> bool:
        """Whether anything says which calls are right, so that there is something to hold calls against."""
        return bool(self.wanted) or any(scope.lists_calls for _, scope, _ in self.scopes)

    @lazy
    def catalogue(self) -> dict[str, ToolDef]:
        """The tools on offer by name; empty also where the trace does not tell."""
        return {tool.name: tool for tool in self.trace.tools or ()}

    @lazy
    def subjects(self) -> tuple[Subject, ...]:
        """The subject of each step."""
        return tuple([Subject(step.index, None, step.turn) for step in self.trace.steps])

    def schema_of(self, step: Step) -> Validator | None:
        """The compiled schema of the tool a step calls, where there is one that can be used."""
        name = step.call.name
        if name not in self._schemas:
            tool = self.catalogue.get(name)
            try:
                self._schemas[name] = self.schema(tool) if tool and tool.parameters is not None else None
            except SchemaProblem:
                self._schemas[name] = None
        return self._schemas[name]

    def schema(self, tool: ToolDef, dialect: Dialect = "auto", *, formats: bool = True) -> Validator:
        """The compiled parameters schema of a tool. Raises SchemaProblem where it cannot be used."""
        key = ("schema", tool.name, dialect, formats)
        return self.once(key, lambda: validator(tool.parameters, dialect=dialect, formats=formats))

    def same_name(self, expected: str, actual: str) -> bool:
        """Whether two tool names are the same, as the rubric compares them."""
        return expected == actual or (self.matching.fold_names and folded(expected) == folded(actual))

    def absent(self, turn: int | None) -> Skipped | None:
        """Why nothing can be said of a turn, if the trace does not have it."""
        if turn is None or 1 <= turn <= self.trace.turns or (turn == 0 and self.steps_of(0)):
            return None
        return Skipped("not_captured", f"the trace has no turn {turn}; it has {self.trace.turns}, counted from 1")

    def steps_of(self, turn: int | None) -> tuple[Step, ...]:
        """The steps of a turn; None: all."""
        return self.trace.steps if turn is None else tuple([s for s in self.trace.steps if s.turn == turn])

    @lazy
    def alignment(self) -> Alignment:
        """The optimal one-to-one alignment: names first, required calls before optional ones, then arguments, then order.

        A required call that is left over is paired with a call that is left over too, as the wrong tool in its place.
        """
        steps = self.trace.steps
        if self._perfect_in_order():
            return Alignment(tuple([Pair(i, i, *wanted.options[0]) for i, wanted in enumerate(self.wanted)]), (), ())
        rows = self._rows
        gains = [[self._gain(self.wanted[row], step) for step in steps] for row in rows]
        pairs = sorted([self._pair(rows[i], j) for i, j in assign(gains) if gains[i][j]])
        paired, taken = {pair.expected for pair in pairs}, {pair.step for pair in pairs}
        return Alignment(
            pairs=tuple(pairs),
            missing=tuple([i for i, wanted in enumerate(self.wanted) if wanted.required and i not in paired]),
            extra=tuple([j for j in range(len(steps)) if j not in taken]),
        )

    @lazy
    def _rows(self) -> list[int]:
        """The expected calls in an order that is not that of writing where this means nothing, so that it breaks no tie."""
        return sorted(range(len(self.wanted)), key=lambda n: (_place(self.wanted[n]), _written(self.wanted[n])))

    def _perfect_in_order(self) -> bool:
        """Whether each call is the one expected in its place, to the last argument: then nothing can beat that alignment."""
        steps, wanted = self.trace.steps, self.wanted
        if len(steps) != len(wanted):
            return False
        for step, one in zip(steps, wanted, strict=True):
            pattern = one.options[0][1]
            if one.options[1:] or pattern.tool != step.call.name or not one.in_turn(pattern, step.turn):
                return False
            if len(steps) > 1 and pattern.says_result:
                return False
            if len(steps) > 1 and not self.agrees(pattern, step):
                return False
        return True

    def agrees(self, pattern: CallPattern, step: Step) -> bool:
        """Whether a call's arguments are all that the pattern asks for."""
        return pattern.args is None or self.matching.arguments.pair_value(self, pattern, step) == 1.0

    def _gain(self, wanted: Wanted, step: Step) -> float:
        """What this pair adds: 0 unless the turn fits; a required name outweighs all optional ones, a name all else."""
        timely = [pattern for _, pattern in wanted.options if wanted.in_turn(pattern, step.turn)]
        names = [pattern for pattern in timely if self.same_name(pattern.tool, step.call.name)]
        if not names:
            return self._in_its_place(step) if timely and wanted.required else 0.0
        size = len(self.wanted) + 1.0
        named = size * size if wanted.required else size
        named += (
            IN_ITS_PLACE if wanted.position is not None else 0.0
        )  # of equal patterns the one with a place goes first
        if not (wanted.options[1:] or self._contested(names[0].tool, step)):
            return named
        # Of calls that are worth the same, one that would count as too many goes before one that is free.
        needed = IN_ITS_PLACE if step.index in self._one_too_many else 0.0
        return named + needed + max([self._worth(pattern, step) for pattern in names])

    def _worth(self, pattern: CallPattern, step: Step) -> float:
        """What pairing these two of one name is worth: their arguments, and among equals the result."""
        arguments = self.matching.arguments.pair_value(self, pattern, step)
        return arguments + (BY_RESULT * _returned(pattern, step) if pattern.says_result else 0.0)

    def _in_its_place(self, step: Step) -> float:
        """A call that would count as one too many rather than one that is free: no order of writing may decide which."""
        return IN_ITS_PLACE if step.index in self._one_too_many else IN_ITS_PLACE / 2

    @lazy
    def _one_too_many(self) -> frozenset[int]:
        return frozenset([step.index for step in self.trace.steps if isinstance(self.unexpected(step), Scored)])

    def _contested(self, tool: str, step: Step) -> bool:
        """Whether more than one pair has these names, so that the arguments must decide."""
        wanted, made = self._name_counts
        return wanted[tool] > 1 or made[step.call.name] > 1 or self.matching.fold_names

    @lazy
    def _name_counts(self) -> tuple[Counter[str], Counter[str]]:
        due = Counter([pattern.tool for wanted in self.wanted for _, pattern in wanted.options])
        return due, Counter([step.call.name for step in self.trace.steps])

    def _pair(self, i: int, j: int) -> Pair:
        options, step = self.wanted[i].options, self.trace.steps[j]
        path, pattern = (
            max(options, key=lambda option: self._option_gain(option[1], step)) if options[1:] else options[0]
        )
        return Pair(i, j, path, pattern)

    def _option_gain(self, pattern: CallPattern, step: Step) -> float:
        if not self.same_name(pattern.tool, step.call.name) or pattern.turn not in (None, step.turn):
            return 0.0
        return 1.0 + self._worth(pattern, step)

    def unexpected(self, step: Step) -> Outcome | None:
        """What an unmatched call is worth to a check that scores calls; None where it is nobody's business."""
        listing = [scope for _, scope, turn in self.scopes if turn in (None, step.turn) and scope.lists_calls]
        if not listing or self._allows(step.turn):
            return None
        tool = self.catalogue.get(step.call.name)
        if tool is not None and tool.read_only:
            finding = Finding("extra_read", f"{step.call.name} was not expected; it only reads", call_path(step))
            return Skipped("not_applicable", "an unexpected call that only reads", (finding,))
        return failed(0.0, Finding("extra_call", f"{step.call.name} was not expected", call_path(step)))

    def _allows(self, turn: int) -> bool:
        """Whether calls beyond the listed ones are fine: the turn's word goes before the trace's, the rubric's comes last."""
        scopes = [scope for _, scope, of in self.scopes if of in (None, turn)]
        said = [scope.allow_extra for scope in scopes if scope.allow_extra is not None]
        return said[-1] if said else self.matching.extra_calls == "allow"


def _place(wanted: Wanted) -> tuple[int, int]:
    """The turn and the place of an expected call; those without a place come last."""
    return wanted.turn or 0, UNPLACED if wanted.position is None else wanted.position


UNPLACED = 2**31


def _written(wanted: Wanted) -> list[str]:
    return sorted(pattern.model_dump_json() for _, pattern in wanted.options)


def _returned(pattern: CallPattern, step: Step) -> float:
    """How well a call's result fits the one expected, 0..1."""
    if step.result is None:
        return 0.0
    match = matcher_of(pattern.result).match(step.result.content)
    return match.value if isinstance(match, Match) else 0.0


def folded(name: str) -> str:
    """A tool name without case and with `-`, `_` and `.` as one.

    >>> folded("Math.Add-Up")
    'math_add_up'
    """
    return name.casefold().replace("-", "_").replace(".", "_")


def call_path(step: Step) -> str:
    """The pointer of a step's call."""
    return f"/steps/{step.index}/call"

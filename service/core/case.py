"""A trace with what was expected of it, as the checks see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar, cast

from service.core.binding import Bound
from service.core.checks import Check, Subject
from service.core.expect import CallPattern, Expectation, Scope, Wanted
from service.core.lazy import lazy
from service.core.match import assign
from service.core.outcome import Finding, Outcome, Scored, Skipped, failed
from service.core.schemas import Dialect, SchemaProblem, Validator, validator
from service.core.trace import Step, ToolDef, Trace

T = TypeVar("T")

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

    fold_names: bool = False
    arguments: Check | None = None
    """The check whose score of a pair the assignment maximises, names being equal."""
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
    matching_pairs: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    """Pattern (its id) and step of pairs already found to match in every argument."""
    bound: dict[int, dict[str, Bound]] = field(default_factory=dict[int, dict[str, Bound]])
    """The arguments of each pattern (by its id) with their critics."""
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
        gains = [[self._gain(wanted, step) for step in steps] for wanted in self.wanted]
        pairs = [self._pair(i, j) for i, j in assign(gains) if gains[i][j]]
        paired, taken = {pair.expected for pair in pairs}, {pair.step for pair in pairs}
        return Alignment(
            pairs=tuple(pairs),
            missing=tuple([i for i, wanted in enumerate(self.wanted) if wanted.required and i not in paired]),
            extra=tuple([j for j in range(len(steps)) if j not in taken]),
        )

    def _perfect_in_order(self) -> bool:
        """Whether each call is the one expected in its place, to the last argument: then nothing can beat that alignment."""
        steps, wanted, scorer = self.trace.steps, self.wanted, self.matching.arguments
        if len(steps) != len(wanted):
            return False
        for step, one in zip(steps, wanted, strict=True):
            pattern = one.options[0][1]
            if pattern.tool != step.call.name or (one.turn is not None and one.turn != step.turn):
                return False
            if len(steps) > 1 and scorer is not None and scorer.pair_value(self, pattern, step) < 1.0:
                return False
        return True

    def _gain(self, wanted: Wanted, step: Step) -> float:
        """What this pair adds: 0 unless the turn fits; a required name outweighs all optional ones, a name all else."""
        if wanted.turn is not None and wanted.turn != step.turn:
            return 0.0
        names = [pattern for _, pattern in wanted.options if self.same_name(pattern.tool, step.call.name)]
        if not names:
            return self._in_its_place(step) if wanted.required else 0.0
        size = len(self.wanted) + 1.0
        named = size * size if wanted.required else size
        named += (
            IN_ITS_PLACE if wanted.position is not None else 0.0
        )  # of equal patterns the one with a place goes first
        scorer = self.matching.arguments
        if scorer is None or not (len(names) > 1 or self._contested(names[0].tool, step)):
            return named
        return named + max([scorer.pair_value(self, pattern, step) for pattern in names])

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
        if not self.same_name(pattern.tool, step.call.name):
            return 0.0
        scorer = self.matching.arguments
        return 1.0 + (scorer.pair_value(self, pattern, step) if scorer else 0.0)

    def unexpected(self, step: Step) -> Outcome | None:
        """What an unmatched call is worth to a check that scores calls; None where it is nobody's business."""
        listing = [scope for _, scope, turn in self.scopes if turn in (None, step.turn) and scope.lists_calls]
        if not listing or self._allows(listing):
            return None
        tool = self.catalogue.get(step.call.name)
        if tool is not None and tool.read_only:
            finding = Finding("extra_read", f"{step.call.name} was not expected; it only reads", call_path(step))
            return Skipped("not_applicable", "an unexpected call that only reads", (finding,))
        return failed(0.0, Finding("extra_call", f"{step.call.name} was not expected", call_path(step)))

    def _allows(self, listing: Iterable[Scope]) -> bool:
        """Whether calls beyond the listed ones are fine: the turn's word goes before the trace's, the rubric's comes last."""
        said = [scope.allow_extra for scope in listing if scope.allow_extra is not None]
        return said[-1] if said else self.matching.extra_calls == "allow"


def folded(name: str) -> str:
    """A tool name without case and with `-`, `_` and `.` as one.

    >>> folded("Math.Add-Up")
    'math_add_up'
    """
    return name.casefold().replace("-", "_").replace(".", "_")


def call_path(step: Step) -> str:
    """The pointer of a step's call."""
    return f"/steps/{step.index}/call"

"""What a check is: it looks at a case and gives an outcome for each thing it looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, TypeVar, cast

from service.core.expect import CallPattern, Expectation
from service.core.kinds import Frozen
from service.core.match import assign
from service.core.outcome import Finding, Outcome, Skipped, failed
from service.core.schemas import Dialect, Validator, validator
from service.core.trace import Step, ToolDef, Trace

T = TypeVar("T")

Aggregate = Literal["mean", "min"]


class Subject(NamedTuple):
    """What an outcome speaks of: a step, an expected call that was not made, a turn, or (all None) the whole trace."""

    step: int | None = None
    expected: int | None = None
    turn: int | None = None

    def covers(self, other: Subject) -> bool:
        """Whether what fails here leaves nothing to look at there."""
        if self.step is not None:
            return self.step == other.step
        if self.expected is not None:
            return self.expected == other.expected
        return self.turn is None or self.turn == other.turn


WHOLE = Subject()

Seen = tuple[Subject, Outcome]
"""One outcome and what it speaks of."""


class Alignment(NamedTuple):
    """Which actual call stands for which expected one, one to one."""

    pairs: tuple[tuple[int, int], ...]
    """(expected, step) by expected."""
    missing: tuple[int, ...]
    """Expected calls that no call stands for."""
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
    """A trace with what was expected of it, as the checks see it."""

    trace: Trace
    expectation: Expectation | None
    matching: Matching
    _memo: dict[object, object] = field(default_factory=dict[object, object])

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` gave the first time it was asked for under this key."""
        if key not in self._memo:
            self._memo[key] = make()
        return cast("T", self._memo[key])

    @cached_property
    def patterns(self) -> tuple[tuple[str, CallPattern], ...]:
        """The expected calls with their pointers."""
        return tuple(self.expectation.patterns()) if self.expectation else ()

    @cached_property
    def catalogue(self) -> dict[str, ToolDef]:
        """The tools on offer by name; empty also where the trace does not tell."""
        return {tool.name: tool for tool in self.trace.tools or ()}

    @cached_property
    def allows_extra(self) -> bool:
        """Whether calls beyond the expected ones are fine."""
        said = self.expectation.allow_extra if self.expectation else None
        return self.matching.extra_calls == "allow" if said is None else said

    @cached_property
    def alignment(self) -> Alignment:
        """The optimal one-to-one alignment: names first, then arguments, then the order of writing."""
        steps, wanted = self.trace.steps, self.patterns
        if len(steps) == len(wanted) == 1:
            return Alignment(((0, 0),), (), ())
        pairs = assign([[self._gain(pattern, step) for step in steps] for _, pattern in wanted])
        return Alignment(
            pairs=tuple(pairs),
            missing=tuple(sorted(set(range(len(wanted))) - {i for i, _ in pairs})),
            extra=tuple(sorted(set(range(len(steps))) - {j for _, j in pairs})),
        )

    def _gain(self, pattern: CallPattern, step: Step) -> float:
        if not self.same_name(pattern.tool, step.call.name):
            return 0.0
        named = len(self.patterns) + 1.0  # more than all arguments together: names go first
        scorer = self.matching.arguments
        return named + scorer.pair_value(self, pattern, step) if scorer and self._contested(pattern, step) else named

    def _contested(self, pattern: CallPattern, step: Step) -> bool:
        """Whether more than one pair has these names, so that the arguments must decide."""
        wanted, made = self._name_counts
        return wanted[pattern.tool] > 1 or made[step.call.name] > 1 or self.matching.fold_names

    @cached_property
    def _name_counts(self) -> tuple[Counter[str], Counter[str]]:
        return Counter(p.tool for _, p in self.patterns), Counter(step.call.name for step in self.trace.steps)

    def schema(self, tool: ToolDef, dialect: Dialect = "auto", *, formats: bool = True) -> Validator:
        """The compiled parameters schema of a tool. Raises SchemaProblem where it cannot be used."""
        key = ("schema", tool.name, dialect, formats)
        return self.once(key, lambda: validator(tool.parameters, dialect=dialect, formats=formats))

    def same_name(self, expected: str, actual: str) -> bool:
        """Whether two tool names are the same, as the rubric compares them."""
        return expected == actual or (self.matching.fold_names and folded(expected) == folded(actual))

    def free_extra(self, step: Step) -> bool:
        """Whether an unmatched call costs nothing: extras are allowed, or its tool only reads."""
        if self.allows_extra:
            return True
        tool = self.catalogue.get(step.call.name)
        return tool is not None and tool.read_only

    def unexpected(self, step: Step) -> Outcome | None:
        """What an unmatched call is worth to a check that scores calls; None where extras go unmentioned."""
        if self.allows_extra:
            return None
        if self.free_extra(step):
            finding = Finding("extra_read", f"{step.call.name} was not expected; it only reads", call_path(step))
            return Skipped("not_applicable", "an unexpected call that only reads", (finding,))
        return failed(0.0, Finding("extra_call", f"{step.call.name} was not expected", call_path(step)))


def folded(name: str) -> str:
    """A tool name without case and with `-`, `_` and `.` as one.

    >>> folded("Math.Add-Up")
    'math_add_up'
    """
    return name.casefold().replace("-", "_").replace(".", "_")


def call_path(step: Step) -> str:
    """The pointer of a step's call."""
    return f"/steps/{step.index}/call"


def at_step(step: Step) -> Subject:
    """The subject that is this step."""
    return Subject(step=step.index, turn=step.turn)


class Check(Frozen):
    """The base of all checks. A subclass names its `kind` and lives in one file with its doctests."""

    by_default: ClassVar[Aggregate] = "mean"
    """How a criterion folds the outcomes when the rubric does not say."""

    def look(self, case: Case) -> Iterable[Seen]:  # noqa: ARG002
        """The outcomes that code decides."""
        return ()

    def pair_value(self, case: Case, pattern: CallPattern, step: Step) -> float:  # noqa: ARG002
        """What pairing these two is worth, 0..1; only checks that compare arguments say anything."""
        return 0.0

"""Compare expected with actual calls within the budget of one item: who agrees with whom, and what a pair is worth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from service.core.expectations.expectation import CallPattern, ExpectedCall
from service.core.json.values import Contents
from service.core.models.light import lazy
from service.core.trace import Step
from service.core.work_limits import (
    COST_OF_A_CHARACTER,
    MAX_ALIGNMENT_COMPARISONS,
    MAX_TEXT_CHARS,
    OverBudgetError,
    count_text_chars,
)

if TYPE_CHECKING:
    from service.core.case import Case


_BESIDE = {"turn", "optional", "reason"}
"""What of a pattern no comparison looks at."""


class Comparisons:
    """Compares a case's expected calls with its actual ones. A tool goes by its key: its name as the rubric compares names."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self.contents = Contents()
        """The numbers of argument values: the same for equal ones."""
        self._exact_contents = Contents(exact=True)
        self._found: dict[Hashable, frozenset[int]] = {}
        self._comparisons, self._chars = MAX_ALIGNMENT_COMPARISONS, MAX_TEXT_CHARS

    @lazy
    def steps_by_tool(self) -> Mapping[str, Sequence[int]]:
        """The steps that call each tool."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for step in self._case.trace.steps:
            found[self._case.make_name_key(step.call.name)].append(step.index)
        return found

    def find_steps(self, tool: str) -> Sequence[int]:
        """Return the steps that call a tool of this name."""
        return self.steps_by_tool.get(self._case.make_name_key(tool), ())

    def compute_worth(self, pattern: CallPattern, step: Step) -> float:
        """Return what a pair of one name is worth. Raises OverBudgetError beyond the budget of the item."""
        self._spend(pattern, [step])
        return self._case.compute_worth(pattern, step)

    def find_agreeing(self, pattern: CallPattern) -> frozenset[int]:
        """Return the calls of its tool that have all its arguments. Raises OverBudgetError beyond the budget of the item."""
        return self._find("agrees", pattern, self._case.agrees)

    def find_fitting(self, wanted: ExpectedCall) -> frozenset[int]:
        """Return the calls that pass for an expected one, by turn, arguments and result; for equal ones, the same object.

        Raises OverBudgetError likewise.
        """
        key = wanted.turn, tuple([(self._describe(pattern), pattern.turn) for _, pattern in wanted.options])
        if key not in self._found:
            found, steps = set[int](), self._case.trace.steps
            for _, pattern in wanted.options:
                fitting = self._find("fits", pattern, self._case.fits)
                found |= {j for j in fitting if wanted.is_in_turn(pattern, steps[j].turn)}
            self._found[key] = frozenset(found)
        return self._found[key]

    def _find(self, what: str, pattern: CallPattern, accepts: Callable[[CallPattern, Step], bool]) -> frozenset[int]:
        """Find the calls of its tool that a pattern accepts; equal patterns are compared once, and so are equal calls."""
        key = what, self._describe(pattern)
        if key not in self._found:
            groups = self._group_candidates(pattern)
            self._spend(pattern, [alike[0] for alike in groups])
            self._found[key] = frozenset([one.index for alike in groups if accepts(pattern, alike[0]) for one in alike])
        return self._found[key]

    def require_room(self, wanted: Iterable[ExpectedCall]) -> None:
        """Raise OverBudgetError, before any work is done, if `find_fitting` of all of these goes beyond the budget."""
        patterns = {self._describe(pattern): pattern for one in wanted for _, pattern in one.options}
        comparisons, chars = self._comparisons, self._chars
        for pattern in patterns.values():
            self._spend(pattern, [alike[0] for alike in self._group_candidates(pattern)])
        self._comparisons, self._chars = comparisons, chars

    def _describe(self, pattern: CallPattern) -> Hashable:
        """Return what is equal for patterns that accept the same calls, whatever their turns."""
        content = self._case.once(("content", id(pattern)), lambda: pattern.model_dump_json(exclude=_BESIDE))
        return content, pattern.says_result

    def _group_candidates(self, pattern: CallPattern) -> Sequence[Sequence[Step]]:
        """Group the calls that a pattern is compared with: those that are equal together."""
        groups: defaultdict[Hashable, list[Step]] = defaultdict(list)
        for j in self._list_candidates(pattern):
            step = self._case.trace.steps[j]
            groups[self._contents_of_steps[j], pattern.says_result and self._number_result(step)].append(step)
        return list(groups.values())

    @lazy
    def _contents_of_steps(self) -> Sequence[Hashable]:
        steps = self._case.trace.steps
        return [(step.agent, step.call.name, self._exact_contents.number(step.call.arguments)) for step in steps]

    def _number_result(self, step: Step) -> int:
        returned = () if step.result is None else (step.result.content,)
        return self._case.once(("result", step.index), lambda: self._exact_contents.number(returned))

    def spend(self, units: int) -> None:
        """Pay for other work of the alignment. Raises OverBudgetError beyond the budget of the item."""
        self._comparisons -= units
        if self._comparisons < 0:
            raise OverBudgetError("too many calls to pair", MAX_ALIGNMENT_COMPARISONS)

    def _list_candidates(self, pattern: CallPattern) -> Sequence[int]:
        """List the calls of the tool that have the rarest of the expected values, where values are compared by equality alone."""
        key = self._case.make_name_key(pattern.tool)
        named = self.steps_by_tool.get(key, ())
        if not pattern.args or pattern.weights or len(named) < 2 or not self._case.is_plain(pattern):
            return named
        having = self._steps_by_value[key]
        return min([having.get((name, self.contents.number(one)), ()) for name, one in pattern.args.items()], key=len)

    @lazy
    def _steps_by_value(self) -> Mapping[str, Mapping[tuple[str, int], Sequence[int]]]:
        """The steps of each tool by argument and value; a call that lacks an argument has the schema's default."""
        found: defaultdict[str, defaultdict[tuple[str, int], list[int]]] = defaultdict(lambda: defaultdict(list))
        for step in self._case.trace.steps:
            having = found[self._case.make_name_key(step.call.name)]
            schema = self._case.find_validator(step)
            given = {**({} if schema is None else schema.defaults), **(step.call.arguments or {})}
            for name, value in given.items():
                having[name, self.contents.number(value)].append(step.index)
        return found

    def _spend(self, pattern: CallPattern, steps: Iterable[Step]) -> None:
        """Pay for comparing a pattern with these steps, by arguments and the cost of its matchers, and by the texts they read."""
        cost, chars = self._case.once(("cost of comparing", id(pattern)), lambda: self._weigh(pattern))
        for step in steps:
            self._comparisons -= cost
            if chars:
                self._chars -= COST_OF_A_CHARACTER * (chars + self._count_chars(step))
        if self._comparisons < 0 or self._chars < 0:
            self._refuse(pattern)

    def _refuse(self, pattern: CallPattern) -> NoReturn:
        key = self._case.make_name_key(pattern.tool)
        patterns = [one for wanted in self._case.expected_calls for _, one in wanted.options]
        tools = [self._case.make_name_key(one.tool) for one in patterns]
        counts = f"{tools.count(key)} calls of {key} were expected and {len(self.find_steps(key))} made"
        raise OverBudgetError(f"{counts}, too many to compare each with each", MAX_ALIGNMENT_COMPARISONS)

    def _weigh(self, pattern: CallPattern) -> tuple[int, int]:
        cost = max(1, len(pattern.args or ())) * self._case.find_cost(pattern)
        if self._case.is_plain(pattern):
            return cost, 0
        return cost, 1 + count_text_chars([pattern.model_dump(mode="json", include={"args", "result"})])

    def _count_chars(self, step: Step) -> int:
        def count() -> int:
            return count_text_chars([step.call.arguments, step.result and step.result.content])

        return self._case.once(("characters", step.index), count)

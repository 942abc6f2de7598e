"""Pair each expected call with the actual call that stands for it.

Few pairs are weighed each against each, and the best assignment of all wins. Of many, calls with exactly the expected arguments
are paired first, then as many others as can agree; what is left is weighed tool by tool. Where that is too much work, the rest is
paired in order, and a pair of these that does not pass is not proved wrong (`Alignment.unsettled`).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from service.core.alignment.matching import assign
from service.core.expectations.expectation import CallPattern, ExpectedCall
from service.core.expectations.templates import has_matcher
from service.core.models.light import light
from service.core.trace import Step
from service.core.work_limits import MAX_WEIGHED_PAIRS, OverBudgetError

if TYPE_CHECKING:
    from service.core.case import Case

FEW_PAIRS = 256
"""Up to this many pairs are weighed each against each."""

STAND_IN_GAIN = 1e-6
"""The gain of pairing a required call with a call of another tool: more than nothing, less than anything else."""


@light
class Pair:
    """An expected call, the step of the actual call that stands for it, and the option (pointer and pattern) it stands for."""

    expected: int
    step: int
    path: str
    pattern: CallPattern


class Alignment(NamedTuple):
    """The one-to-one pairing of expected and actual calls."""

    pairs: tuple[Pair, ...]
    """The pairs, in the order of the expected calls."""
    missing: tuple[int, ...]
    """Required calls that no actual call stands for."""
    extra: tuple[int, ...]
    """Steps that stand for no expected call."""
    unsettled: Mapping[int, str] = {}
    """Expected calls that another actual call may fit better, each with the reason why nobody checked."""
    tries: Mapping[int, int] = {}
    """Failed tries, which are neither paired nor extra: the step of each, and the step of the retry that worked."""
    possible_tries: Mapping[int, int] = {}
    """Extra calls that may be failed tries, because the trace does not say what one of the two calls returned."""


def align(case: Case) -> Alignment:
    """Align a case's calls: by name first, required calls before optional ones, then by arguments, then by order.

    A required call left unpaired takes an actual call left unpaired, as the wrong tool in its place.
    """
    return _Aligner(case).build()


class _Aligner:
    def __init__(self, case: Case) -> None:
        self.case = case
        self.steps = case.trace.steps
        self.expected_calls = case.expected_calls
        self.rows = list(range(len(self.expected_calls)))
        if self.rows[1:]:  # one row needs no sorting, and rendering costs time
            self.rows.sort(key=lambda n: (_find_place(self.expected_calls[n]), _render_options(self.expected_calls[n])))
        self.step_of: dict[int, int] = {}
        """The pairs so far: expected call -> step."""
        self.row_of: dict[int, int] = {}
        """The same the other way round."""
        self.unsettled: dict[int, str] = {}
        self.made = case.comparisons.steps_by_tool
        patterns = [pattern for one in self.expected_calls for _, pattern in one.options]
        self.wanted = Counter([case.make_name_key(pattern.tool) for pattern in patterns])
        """How often each tool is expected: where it, or its calls, are several, the arguments decide."""

    def build(self) -> Alignment:
        columns = range(len(self.steps))
        if len(self.rows) * len(columns) <= FEW_PAIRS:
            self._assign(self.rows, columns, self.case.compute_worth)
        else:
            for required in (True, False):
                self._pair_exact(required=required)
                self._pair_fitting(required=required)
            for rows, tools in self._list_groups():
                self._pair_group(rows, tools)
            self._pair_in_order([i for i in self.rows if self.expected_calls[i].required], columns, same_tool=False)
        return Alignment(
            pairs=tuple([self._build_pair(i, self.step_of[i]) for i in sorted(self.step_of)]),
            missing=tuple([i for i, one in enumerate(self.expected_calls) if one.required and i not in self.step_of]),
            extra=tuple([j for j in columns if j not in self.row_of]),
            unsettled=self.unsettled,
        )

    def _pair(self, i: int, j: int) -> None:
        self.step_of[i], self.row_of[j] = j, i

    def _assign(
        self, rows: Sequence[int], columns: Sequence[int], compute_worth: Callable[[CallPattern, Step], float]
    ) -> None:
        # Calls of tools that nobody expects go last: among equal pairs the order decides, and they must not move it.
        columns = sorted(columns, key=lambda j: self.case.make_name_key(self.steps[j].call.name) not in self.wanted)
        size = min(len(rows), len(columns)) + 1.0
        gains = [[self._compute_gain(i, self.steps[j], compute_worth, size) for j in columns] for i in rows]
        for i, j in assign(gains):
            if gains[i][j]:
                self._pair(rows[i], columns[j])

    def _compute_gain(
        self, i: int, step: Step, compute_worth: Callable[[CallPattern, Step], float], size: float
    ) -> float:
        """Compute the gain of one pair: 0 unless the turn fits.

        A required call's name outweighs all optional ones together, a name all that passes, a pair that passes all scores.
        Among equal patterns, one with a position goes first. A step that would count as extra goes before one that costs
        nothing.
        """
        wanted = self.expected_calls[i]
        in_turn = [pattern for _, pattern in wanted.options if wanted.is_in_turn(pattern, step.turn)]
        same_name = [pattern for pattern in in_turn if self.case.is_same_name(pattern.tool, step.call.name)]
        need = STAND_IN_GAIN if step.index in self.case.chargeable_steps else 0.0
        if not same_name:
            return (need or STAND_IN_GAIN / 2) if in_turn and wanted.required else 0.0
        gain = 4 * size**3 if wanted.required else 2 * size**2
        gain += STAND_IN_GAIN if wanted.position is not None else 0.0
        key = self.case.make_name_key(step.call.name)
        contested = self.wanted[key] > 1 or len(self.made[key]) > 1
        if not (contested or wanted.options[1:]):
            return gain
        return gain + need + max([size * self.case.fits(one, step) + compute_worth(one, step) for one in same_name])

    # What many calls need.

    def _pair_exact(self, *, required: bool) -> None:
        """Pair calls with exactly the expected arguments; first what a turn is set for and what allows no more arguments."""
        number = self.case.comparisons.contents.number
        pool = _Pool()
        for step in self._list_free(range(len(self.steps))):
            key = self.case.make_name_key(step.call.name), number(step.call.arguments)
            pool.add(step.index, [(*key, turn) for turn in (None, step.turn)])
        plain: list[tuple[tuple[bool, bool], int, Hashable]] = []
        for i in self._list_open(required=required):
            wanted = self.expected_calls[i]
            _, pattern = wanted.options[0]
            if not (wanted.options[1:] or pattern.args is None or pattern.says_result or has_matcher(pattern.args)):
                turn = _find_turn(wanted, pattern)
                key = self.case.make_name_key(pattern.tool), number(pattern.args), turn
                plain.append(((turn is None, pattern.extra_args == "allow"), i, key))
        for _, i, key in sorted(plain, key=lambda one: one[0]):
            if (j := pool.take([key])) is not None:
                self._pair(i, j)

    def _pair_fitting(self, *, required: bool) -> None:
        """Pair as many more as can pass, re-pairing others that pass with another call as well."""
        dead: set[int] = set()
        """Steps from which no search reaches a free one, now or later."""
        rows = self._list_open(required=required)
        try:
            self.case.comparisons.require_room([self.expected_calls[i] for i in rows])
            for i in rows:
                self._augment(i, dead)
        except OverBudgetError as error:
            self.unsettled |= dict.fromkeys(self._list_open(), str(error))

    def _augment(self, i: int, dead: set[int]) -> None:
        """Pair one more expected call with a step that fits, along the shortest path of pairs to be changed."""
        before: dict[int, int] = {}  # step -> the expected call that reached it first
        waiting, seen = [i], set[int]()
        for row in waiting:
            fitting = self.case.comparisons.find_fitting(self.expected_calls[row])
            if id(fitting) in seen:
                continue
            seen.add(id(fitting))
            self.case.comparisons.spend(len(fitting))
            reached = sorted(fitting - before.keys() - dead, key=self._rank_step)
            before |= dict.fromkeys(reached, row)
            free = next((j for j in reached if j not in self.row_of), None)
            if free is not None:
                break
            waiting += [self.row_of[j] for j in reached]
        else:
            dead.update(before)
            return
        while free is not None:
            row = before[free]
            freed = self.step_of.get(row)
            self._pair(row, free)
            free = freed

    def _list_groups(self) -> Iterable[tuple[list[int], set[str]]]:
        """Split what is not paired into independent groups: expected calls, and the tools that can stand for them alone."""
        group_of: dict[str, list[str]] = {}
        for i in self._list_open():
            tools = [self.case.make_name_key(pattern.tool) for _, pattern in self.expected_calls[i].options]
            merged = list(dict.fromkeys([one for tool in tools for one in group_of.get(tool, [tool])]))
            group_of |= dict.fromkeys(merged, merged)
        rows: defaultdict[str, list[int]] = defaultdict(list)
        for i in self._list_open():
            rows[group_of[self.case.make_name_key(self.expected_calls[i].tool)][0]].append(i)
        return [(found, set(group_of[tool])) for tool, found in rows.items()]

    def _pair_group(self, rows: Sequence[int], tools: set[str]) -> None:
        """Weigh each against each; beyond the budget, pair in order."""
        made = self.case.comparisons.steps_by_tool
        columns = sorted([j for tool in tools for j in made.get(tool, ()) if j not in self.row_of])
        if not columns:
            return None
        if len(rows) * len(columns) <= MAX_WEIGHED_PAIRS:
            with suppress(OverBudgetError):
                return self._assign(rows, columns, self.case.comparisons.compute_worth)
        counts = f"{len(rows)} calls of {self.expected_calls[rows[0]].tools} were expected and {len(columns)} made"
        self.unsettled |= dict.fromkeys(rows, f"{counts}, too many to weigh each against each")
        for required in (True, False):
            some = [i for i in rows if self.expected_calls[i].required == required]
            self._pair_in_order(some, columns, same_tool=True)
        return None

    def _pair_in_order(self, rows: Iterable[int], columns: Iterable[int], *, same_tool: bool) -> None:
        """Pair each with the next call of its tool, or of any tool; first those for which a turn is set."""
        pool = _Pool()
        for step in self._list_free(columns):
            key = self.case.make_name_key(step.call.name) if same_tool else None
            pool.add(step.index, [(key, turn) for turn in (None, step.turn)])
        keys: dict[int, list[tuple[str | None, int | None]]] = {}
        for i in rows:
            if i not in self.step_of:
                wanted = self.expected_calls[i]
                keys[i] = [
                    (self.case.make_name_key(pattern.tool) if same_tool else None, _find_turn(wanted, pattern))
                    for _, pattern in wanted.options
                ]
        for i in sorted(keys, key=lambda i: any(turn is None for _, turn in keys[i])):
            if (j := pool.take(keys[i])) is not None:
                self._pair(i, j)

    def _list_open(self, *, required: bool | None = None) -> list[int]:
        """List the expected calls that are not paired, in their order."""
        rows = [i for i in self.rows if i not in self.step_of]
        return rows if required is None else [i for i in rows if self.expected_calls[i].required == required]

    def _list_free(self, columns: Iterable[int]) -> list[Step]:
        """List those of the steps that are not paired; first those that would count as extra."""
        return [self.steps[j] for j in sorted([j for j in columns if j not in self.row_of], key=self._rank_step)]

    def _rank_step(self, step: int) -> tuple[bool, int]:
        return step not in self.case.chargeable_steps, step

    def _build_pair(self, i: int, j: int) -> Pair:
        options, step = self.expected_calls[i].options, self.steps[j]
        if not options[1:]:
            return Pair(i, j, *options[0])
        sorted_options = sorted(options, key=lambda option: _render_pattern(option[1]))
        return Pair(i, j, *max(sorted_options, key=lambda option: self._rank_option(option[1], step)))

    def _rank_option(self, pattern: CallPattern, step: Step) -> tuple[bool, bool, float]:
        if not self.case.is_same_name(pattern.tool, step.call.name) or pattern.turn not in (None, step.turn):
            return False, False, 0.0
        return True, self.case.fits(pattern, step), self.case.compute_worth(pattern, step)


class _Pool:
    """Steps in queues, each under several keys; a step is taken once."""

    def __init__(self) -> None:
        self._queues: defaultdict[Hashable, list[int]] = defaultdict(list)
        self._heads: defaultdict[Hashable, int] = defaultdict(int)
        self._taken: set[int] = set()

    def add(self, step: int, keys: Iterable[Hashable]) -> None:
        for key in keys:
            self._queues[key].append(step)

    def take(self, keys: Iterable[Hashable]) -> int | None:
        """Take the first step under one of these keys; None if there is none."""
        for key in keys:
            queue = self._queues.get(key, ())
            while self._heads[key] < len(queue):
                step = queue[self._heads[key]]
                self._heads[key] += 1
                if step not in self._taken:
                    self._taken.add(step)
                    return step
        return None


def _find_turn(wanted: ExpectedCall, pattern: CallPattern) -> int | None:
    """Return the turn in which the call must be made: None for any, -1 (no turn) where two different ones are asked for."""
    due = {wanted.turn, pattern.turn} - {None}
    return next(iter(due), None) if len(due) < 2 else -1


def align_in_order(case: Case) -> Alignment | None:
    """Pair each call with the expected call at its index, if all fit and either no name repeats or the arguments agree too.

    No other alignment can beat that. None where it does not hold.
    """
    steps, expected_calls = case.trace.steps, case.expected_calls
    count = len(steps)
    if count != len(expected_calls):
        return None
    distinct = not case.matching.fold_names and len({step.call.name for step in steps}) == count
    for step, wanted in zip(steps, expected_calls, strict=True):
        pattern = wanted.options[0][1]
        if wanted.options[1:] or pattern.tool != step.call.name or not wanted.is_in_turn(pattern, step.turn):
            return None
        if not distinct and (pattern.says_result or not case.agrees(pattern, step)):
            return None
    return Alignment(tuple([Pair(i, i, *one.options[0]) for i, one in enumerate(expected_calls)]), (), ())


def _find_place(expected_call: ExpectedCall) -> tuple[int, int]:
    """Return the section and position of an expected call, those without a position last: the order of writing breaks no tie."""
    return expected_call.section, UNPLACED if expected_call.position is None else expected_call.position


UNPLACED = 2**31


def _render_options(expected_call: ExpectedCall) -> list[str]:
    return sorted([_render_pattern(pattern) for _, pattern in expected_call.options])


def _render_pattern(pattern: CallPattern) -> str:
    """Render a pattern as text, by which ties are broken: the order of writing means nothing."""
    return pattern.tool + json.dumps(pattern.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

"""Pair each expected call with the actual call that stands for it: the best of all assignments, within a budget of work.

Up to MAX_ALIGNMENT_PAIRS pairs, all calls are assigned at once. Beyond that, each tool's calls are assigned separately. If one
tool alone has too many pairs, or its matchers need too many comparisons, calls with exactly the expected arguments are paired
first and the rest in order. A pair made this way that does not pass is not proved wrong (`Alignment.unsettled`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from service.core.alignment.matching import assign, assign_matrix
from service.core.alignment.one_pass import pair_in_order
from service.core.alignment.worth_table import FEW_PAIRS
from service.core.expectations.expectation import CallPattern, ExpectedCall
from service.core.models.light import light
from service.core.trace import Step
from service.core.work_limits import MAX_ALIGNMENT_PAIRS
from service.errors import InputError

if TYPE_CHECKING:
    from service.core.alignment.matching import Flags, Floats, Numbers
    from service.core.case import Case

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


IndexPairs = list[tuple[int, int]]
"""Pairs of an expected call's index and a step's index."""


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
        self.unsettled: dict[int, str] = {}

    def build(self) -> Alignment:
        pairs = sorted(self._choose_pairs())
        paired, used = {i for i, _ in pairs}, {j for _, j in pairs}
        return Alignment(
            pairs=tuple([self._build_pair(i, j) for i, j in pairs]),
            missing=tuple(
                [i for i, expected_call in enumerate(self.expected_calls) if expected_call.required and i not in paired]
            ),
            extra=tuple([j for j in range(len(self.steps)) if j not in used]),
            unsettled=self.unsettled,
        )

    def _choose_pairs(self) -> IndexPairs:
        columns = range(len(self.steps))
        rows = list(range(len(self.expected_calls)))
        if rows[1:]:  # one row needs no sorting, and rendering costs time
            rows.sort(key=lambda n: (_find_place(self.expected_calls[n]), _render_options(self.expected_calls[n])))
        count = len(rows) * len(columns)
        if count <= FEW_PAIRS:
            gains = [[self._compute_gain(self.expected_calls[row], step) for step in self.steps] for row in rows]
            return [(rows[i], j) for i, j in assign(gains) if gains[i][j]]
        if count <= MAX_ALIGNMENT_PAIRS and not self.case.worths.oversized_tools:
            return self._assign_pairs(rows, columns)
        return self._pair_by_tool()

    def _pair_by_tool(self) -> IndexPairs:
        """Pair each tool's calls separately, then let calls of wrong tools stand in for the ones that are missing."""
        pairs: IndexPairs = []
        for rows, columns in self.case.worths.find_groups():
            if len(rows) * len(columns) <= MAX_ALIGNMENT_PAIRS and not self.case.worths.has_oversized_tool(rows):
                pairs += self._assign_pairs(rows, columns, stand_ins=False)
            else:
                pairs += self._pair_oversized(rows, columns)
        paired, used = {i for i, _ in pairs}, {j for _, j in pairs}
        rows = [i for i, expected_call in enumerate(self.expected_calls) if expected_call.required and i not in paired]
        columns = [j for j in range(len(self.steps)) if j not in used]
        if len(rows) * len(columns) <= MAX_ALIGNMENT_PAIRS:
            return pairs + self._assign_pairs(rows, columns, by_name=False)
        first = sorted(columns, key=lambda j: j not in self.case.chargeable_steps)[: len(rows)]
        return pairs + pair_in_order(self.case, rows, sorted(first), same_tool=False)

    def _pair_oversized(self, rows: Sequence[int], columns: Sequence[int]) -> IndexPairs:
        tools = {pattern.tool for i in rows for _, pattern in self.expected_calls[i].options}
        path, tool = self.expected_calls[rows[0]].path, self.expected_calls[rows[0]].tools
        counts = f"{len(rows)} calls of {tool} were expected and {len(columns)} made"
        if len({self.case.make_name_key(name) for name in tools}) > 1:
            most = f"at most {MAX_ALIGNMENT_PAIRS} pairs of alternatives are weighed"
            raise InputError.at(path, f"{counts}: {len(rows) * len(columns)} pairs, {most}")
        self.unsettled |= dict.fromkeys(rows, f"{counts}, too many to weigh each against each")
        return pair_in_order(self.case, rows, columns, same_tool=True)

    def _assign_pairs(
        self, rows: Sequence[int], columns: Sequence[int], *, by_name: bool = True, stand_ins: bool = True
    ) -> IndexPairs:
        if not rows or not columns:
            return []
        gains = self._build_gains(rows, columns, by_name=by_name, stand_ins=stand_ins)
        return [(rows[i], columns[j]) for i, j in assign_matrix(gains) if gains[i, j]]

    def _build_gains(self, rows: Sequence[int], columns: Sequence[int], *, by_name: bool, stand_ins: bool) -> Floats:
        """Compute the gain of every pair: pairs of one name (`by_name`) and pairs of a wrong tool (`stand_ins`)."""
        import numpy as np  # noqa: PLC0415 (0.2 s that most traces never need)

        gains = np.zeros((len(rows), len(columns)))
        turns = np.array([self.steps[j].turn for j in columns])
        if stand_ins:
            stand_in_gains = np.array([self._weigh_stand_in(self.steps[j]) for j in columns])
            for n, i in enumerate(rows):
                for _, pattern in self.expected_calls[i].options if self.expected_calls[i].required else ():
                    in_turn = _flag_turns(self.expected_calls[i], pattern, turns)
                    gains[n] = np.maximum(gains[n], stand_in_gains * in_turn)
        if by_name:
            places = {j: n for n, j in enumerate(columns)}
            for key in dict.fromkeys([self.case.make_name_key(self.steps[j].call.name) for j in columns]):
                of_tool = np.array([places[j] for j in self.case.worths.find_steps(key)])
                self._add_name_gains(gains, rows, key, of_tool, turns[of_tool])
        return gains

    def _add_name_gains(self, gains: Floats, rows: Sequence[int], key: str, of_tool: Numbers, turns: Numbers) -> None:
        """Add to `gains` the pairs of one tool, whose calls stand in the columns `of_tool`."""
        import numpy as np  # noqa: PLC0415

        needed = np.array([self._weigh_need(self.steps[j]) for j in self.case.worths.find_steps(key)])
        for n, i in enumerate(rows):
            expected_call = self.expected_calls[i]
            for option, (_, pattern) in enumerate(expected_call.options):
                if self.case.make_name_key(pattern.tool) != key:
                    continue
                gain = np.full(len(of_tool), self._weigh_name(expected_call))
                if expected_call.options[1:] or self.case.worths.is_contested(key):
                    gain = gain + needed + self.case.worths.find_row(i, option)
                in_turn = _flag_turns(expected_call, pattern, turns)
                gains[n, of_tool] = np.maximum(gains[n, of_tool], gain * in_turn)

    def _compute_gain(self, expected_call: ExpectedCall, step: Step) -> float:
        """Compute the gain of one pair: 0 unless the turn fits.

        A required call's name outweighs all optional ones together, and a name outweighs everything else.
        """
        in_turn = [pattern for _, pattern in expected_call.options if expected_call.is_in_turn(pattern, step.turn)]
        same_name = [pattern for pattern in in_turn if self.case.is_same_name(pattern.tool, step.call.name)]
        if not same_name:
            return self._weigh_stand_in(step) if in_turn and expected_call.required else 0.0
        name_gain = self._weigh_name(expected_call)
        if not (expected_call.options[1:] or self.case.worths.is_contested(self.case.make_name_key(step.call.name))):
            return name_gain
        return (
            name_gain + self._weigh_need(step) + max([self.case.compute_worth(pattern, step) for pattern in same_name])
        )

    def _weigh_name(self, expected_call: ExpectedCall) -> float:
        """Return the gain of the name alone. Among equal patterns, one with a position goes first."""
        size = len(self.expected_calls) + 1.0
        return (size * size if expected_call.required else size) + (
            STAND_IN_GAIN if expected_call.position is not None else 0.0
        )

    def _weigh_need(self, step: Step) -> float:
        """Return a tie-breaker: among equal calls, pair the one that would count as extra before one that costs nothing."""
        return STAND_IN_GAIN if step.index in self.case.chargeable_steps else 0.0

    def _weigh_stand_in(self, step: Step) -> float:
        """Return the gain of a stand-in. One that would count as extra goes first, so the order of writing decides nothing."""
        return STAND_IN_GAIN if step.index in self.case.chargeable_steps else STAND_IN_GAIN / 2

    def _build_pair(self, i: int, j: int) -> Pair:
        options, step = self.expected_calls[i].options, self.steps[j]
        best = (
            max(options, key=lambda option: self._compute_option_gain(option[1], step)) if options[1:] else options[0]
        )
        return Pair(i, j, *best)

    def _compute_option_gain(self, pattern: CallPattern, step: Step) -> float:
        if not self.case.is_same_name(pattern.tool, step.call.name) or pattern.turn not in (None, step.turn):
            return 0.0
        return 1.0 + self.case.compute_worth(pattern, step)


def _flag_turns(expected_call: ExpectedCall, pattern: CallPattern, turns: Numbers) -> Flags:
    """Flag the turns in which a call may stand for this option."""
    import numpy as np  # noqa: PLC0415

    due = {pattern.turn, expected_call.turn} - {None}
    return turns == next(iter(due)) if len(due) == 1 else np.full(len(turns), not due)


def align_in_order(case: Case) -> Alignment | None:
    """Pair each call with the expected call at its index, if all fit and either no name repeats or the arguments agree too.

    No other alignment can beat that. None where it does not hold.
    """
    steps, expected_calls = case.trace.steps, case.expected_calls
    count = len(steps)
    if count != len(expected_calls):
        return None
    distinct = not case.matching.fold_names and len({step.call.name for step in steps}) == count
    for step, expected_call in zip(steps, expected_calls, strict=True):
        pattern = expected_call.options[0][1]
        if (
            expected_call.options[1:]
            or pattern.tool != step.call.name
            or not expected_call.is_in_turn(pattern, step.turn)
        ):
            return None
        if not distinct and (pattern.says_result or not case.agrees(pattern, step)):
            return None
    return Alignment(tuple([Pair(i, i, *one.options[0]) for i, one in enumerate(expected_calls)]), (), ())


def _find_place(expected_call: ExpectedCall) -> tuple[int, int]:
    """Return the turn and position of an expected call, those without a position last: the order of writing breaks no tie."""
    return expected_call.turn or 0, UNPLACED if expected_call.position is None else expected_call.position


UNPLACED = 2**31


def _render_options(expected_call: ExpectedCall) -> list[str]:
    return sorted(pattern.model_dump_json() for _, pattern in expected_call.options)

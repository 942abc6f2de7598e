"""Which call made stands for which expected one: the best of all assignments, within a budget of work.

Up to MAX_ALIGNMENT_PAIRS all calls are assigned at once. Beyond that each tool's calls are assigned by themselves. Where those
of one tool are too many too, or where its matchers ask for too many comparisons, calls with exactly the expected arguments are
paired first and the others in their order; what does not pass then is not known to be wrong (`Alignment.unsettled`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from service.core.alignment.crowds import pair_in_order
from service.core.alignment.likeness import FEW_PAIRS
from service.core.alignment.matching import assign, assign_matrix
from service.core.expectations.expectation import CallPattern, ExpectedCall
from service.core.models.light import light
from service.core.trace import Step
from service.core.work_limits import MAX_ALIGNMENT_PAIRS
from service.errors import InputError

if TYPE_CHECKING:
    from service.core.alignment.matching import Flags, Floats, Numbers
    from service.core.case import Case

IN_ITS_PLACE = 1e-6
"""What pairing a required call with one of another tool is worth: more than nothing, less than anything else."""


@light
class Pair:
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
    unsettled: Mapping[int, str] = {}
    """Expected calls that another call may fit better, and why that was not worked out."""


Chosen = list[tuple[int, int]]


def align(case: Case) -> Alignment:
    """The alignment: names first, required calls before optional ones, then arguments, then order.

    A required call that is left over is paired with a call that is left over too, as the wrong tool in its place.
    """
    return _align_in_order(case) or _Aligner(case).build_alignment()


class _Aligner:
    def __init__(self, case: Case) -> None:
        self.case = case
        self.steps = case.trace.steps
        self.expected_calls = case.expected_calls
        self.unsettled: dict[int, str] = {}

    def build_alignment(self) -> Alignment:
        chosen = sorted(self._choose_pairs())
        paired, taken = {i for i, _ in chosen}, {j for _, j in chosen}
        return Alignment(
            pairs=tuple([self._build_pair(i, j) for i, j in chosen]),
            missing=tuple([i for i, wanted in enumerate(self.expected_calls) if wanted.required and i not in paired]),
            extra=tuple([j for j in range(len(self.steps)) if j not in taken]),
            unsettled=self.unsettled,
        )

    def _choose_pairs(self) -> Chosen:
        columns = range(len(self.steps))
        rows = list(range(len(self.expected_calls)))
        if rows[1:]:  # an order of one is settled, and rendering costs
            rows.sort(key=lambda n: (_find_place(self.expected_calls[n]), _render_options(self.expected_calls[n])))
        pairs = len(rows) * len(columns)
        if pairs <= FEW_PAIRS:
            gains = [[self._compute_gain(self.expected_calls[row], step) for step in self.steps] for row in rows]
            return [(rows[i], j) for i, j in assign(gains) if gains[i][j]]
        if pairs <= MAX_ALIGNMENT_PAIRS and not self.case.worths.crowds:
            return self._assign_pairs(rows, columns)
        return self._pair_by_tool()

    def _pair_by_tool(self) -> Chosen:
        """The calls of each tool by themselves, then the wrong tools in the places of those that are missing."""
        chosen: Chosen = []
        for rows, columns in self.case.worths.find_groups():
            settled = len(rows) * len(columns) <= MAX_ALIGNMENT_PAIRS and not self.case.worths.is_crowd(rows)
            chosen += self._assign_pairs(rows, columns, in_place=False) if settled else self._pair_crowd(rows, columns)
        paired, taken = {i for i, _ in chosen}, {j for _, j in chosen}
        rows = [i for i, wanted in enumerate(self.expected_calls) if wanted.required and i not in paired]
        columns = [j for j in range(len(self.steps)) if j not in taken]
        if len(rows) * len(columns) <= MAX_ALIGNMENT_PAIRS:
            return chosen + self._assign_pairs(rows, columns, named=False)
        first = sorted(columns, key=lambda j: j not in self.case.one_too_many)[: len(rows)]
        return chosen + pair_in_order(self.case, rows, sorted(first), of_tool=False)

    def _pair_crowd(self, rows: Sequence[int], columns: Sequence[int]) -> Chosen:
        tools = {pattern.tool for i in rows for _, pattern in self.expected_calls[i].options}
        path, tool = self.expected_calls[rows[0]].path, self.expected_calls[rows[0]].tools
        said = f"{len(rows)} calls of {tool} were expected and {len(columns)} made"
        if len({self.case.make_name_key(name) for name in tools}) > 1:
            most = f"at most {MAX_ALIGNMENT_PAIRS} pairs of alternatives are weighed"
            raise InputError.at(path, f"{said}: {len(rows) * len(columns)} pairs, {most}")
        self.unsettled |= dict.fromkeys(rows, f"{said}, too many to weigh each against each")
        return pair_in_order(self.case, rows, columns, of_tool=True)

    def _assign_pairs(
        self, rows: Sequence[int], columns: Sequence[int], *, named: bool = True, in_place: bool = True
    ) -> Chosen:
        if not rows or not columns:
            return []
        gains = self._build_gains(rows, columns, named=named, in_place=in_place)
        return [(rows[i], columns[j]) for i, j in assign_matrix(gains) if gains[i, j]]

    def _build_gains(self, rows: Sequence[int], columns: Sequence[int], *, named: bool, in_place: bool) -> Floats:
        """`_gain` of every pair: of those whose names are the same, and of those that may stand in each other's place."""
        import numpy as np  # noqa: PLC0415 (0.2 s that most traces never need)

        gains = np.zeros((len(rows), len(columns)))
        turns = np.array([self.steps[j].turn for j in columns])
        if in_place:
            places = np.array([self._weigh_stand_in(self.steps[j]) for j in columns])
            for n, i in enumerate(rows):
                for _, pattern in self.expected_calls[i].options if self.expected_calls[i].required else ():
                    gains[n] = np.maximum(gains[n], places * _flag_turns(self.expected_calls[i], pattern, turns))
        if named:
            at = {j: n for n, j in enumerate(columns)}
            for key in dict.fromkeys([self.case.make_name_key(self.steps[j].call.name) for j in columns]):
                there = np.array([at[j] for j in self.case.worths.find_steps(key)])
                self._add_named(gains, rows, key, there, turns[there])
        return gains

    def _add_named(self, gains: Floats, rows: Sequence[int], key: str, there: Numbers, turns: Numbers) -> None:
        """Adds what the calls of one name, which stand in these columns, gain by the expected ones of that name."""
        import numpy as np  # noqa: PLC0415

        needed = np.array([self._weigh_need(self.steps[j]) for j in self.case.worths.find_steps(key)])
        for n, i in enumerate(rows):
            wanted = self.expected_calls[i]
            for option, (_, pattern) in enumerate(wanted.options):
                if self.case.make_name_key(pattern.tool) != key:
                    continue
                gain = np.full(len(there), self._weigh_name(wanted))
                if wanted.options[1:] or self.case.worths.is_contested(key):
                    gain = gain + needed + self.case.worths.find_row(i, option)
                gains[n, there] = np.maximum(gains[n, there], gain * _flag_turns(wanted, pattern, turns))

    def _compute_gain(self, wanted: ExpectedCall, step: Step) -> float:
        """What this pair adds: 0 unless the turn fits; a required name outweighs all optional ones, a name all else."""
        timely = [pattern for _, pattern in wanted.options if wanted.is_in_turn(pattern, step.turn)]
        names = [pattern for pattern in timely if self.case.is_same_name(pattern.tool, step.call.name)]
        if not names:
            return self._weigh_stand_in(step) if timely and wanted.required else 0.0
        named = self._weigh_name(wanted)
        if not (wanted.options[1:] or self.case.worths.is_contested(self.case.make_name_key(step.call.name))):
            return named
        return named + self._weigh_need(step) + max([self.case.worth(pattern, step) for pattern in names])

    def _weigh_name(self, wanted: ExpectedCall) -> float:
        """What the name alone is worth. Of equal patterns the one with a place goes first."""
        size = len(self.expected_calls) + 1.0
        return (size * size if wanted.required else size) + (IN_ITS_PLACE if wanted.position is not None else 0.0)

    def _weigh_need(self, step: Step) -> float:
        """Of calls that are worth the same, one that would count as too many goes before one that is free."""
        return IN_ITS_PLACE if step.index in self.case.one_too_many else 0.0

    def _weigh_stand_in(self, step: Step) -> float:
        """A call that would count as one too many rather than one that is free: no order of writing may decide which."""
        return IN_ITS_PLACE if step.index in self.case.one_too_many else IN_ITS_PLACE / 2

    def _build_pair(self, i: int, j: int) -> Pair:
        options, step = self.expected_calls[i].options, self.steps[j]
        best = (
            max(options, key=lambda option: self._compute_option_gain(option[1], step)) if options[1:] else options[0]
        )
        return Pair(i, j, *best)

    def _compute_option_gain(self, pattern: CallPattern, step: Step) -> float:
        if not self.case.is_same_name(pattern.tool, step.call.name) or pattern.turn not in (None, step.turn):
            return 0.0
        return 1.0 + self.case.worth(pattern, step)


def _flag_turns(wanted: ExpectedCall, pattern: CallPattern, turns: Numbers) -> Flags:
    """Whether each of these turns may hold the call that an option means."""
    import numpy as np  # noqa: PLC0415

    due = {pattern.turn, wanted.turn} - {None}
    return turns == next(iter(due)) if len(due) == 1 else np.full(len(turns), not due)


def _align_in_order(case: Case) -> Alignment | None:
    """Each call with the one expected in its place, where all fit, and no name comes twice or the arguments do too.

    Nothing can beat that.
    """
    steps, wanted = case.trace.steps, case.expected_calls
    count = len(steps)
    if count != len(wanted):
        return None
    settled = not case.matching.fold_names and len({step.call.name for step in steps}) == count
    for step, one in zip(steps, wanted, strict=True):
        pattern = one.options[0][1]
        if one.options[1:] or pattern.tool != step.call.name or not one.is_in_turn(pattern, step.turn):
            return None
        if not settled and (pattern.says_result or not case.agrees(pattern, step)):
            return None
    return Alignment(tuple([Pair(i, i, *one.options[0]) for i, one in enumerate(wanted)]), (), ())


def _find_place(wanted: ExpectedCall) -> tuple[int, int]:
    """The turn and the place of an expected call, those without a place last: no order of writing breaks a tie."""
    return wanted.turn or 0, UNPLACED if wanted.position is None else wanted.position


UNPLACED = 2**31


def _render_options(wanted: ExpectedCall) -> list[str]:
    return sorted(pattern.model_dump_json() for _, pattern in wanted.options)

"""What the pairs of a case are worth, tool by tool, within the budget of one item."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from service.core.alignment.likeness import Allowance, WorthTable, compare_all
from service.core.models.lazy import lazy
from service.core.work_limits import MAX_ALIGNMENT_COMPARISONS, MAX_ALIGNMENT_PAIRS, MAX_TEXT_CHARS, OverBudgetError

if TYPE_CHECKING:
    from service.core.alignment.matching import Floats
    from service.core.case import Case

MAX_TABLED_PAIRS = 4 * MAX_ALIGNMENT_PAIRS
"""Pairs of all tools together whose worth is kept."""


class Worths:
    """The worth of each pair of one tool. Tools are named by their key: as the rubric compares names."""

    def __init__(self, case: Case) -> None:
        self._case = case

    @lazy
    def rows(self) -> Mapping[str, Mapping[tuple[int, int], int]]:
        """By tool the places of its rows: of expected calls and options."""
        found: defaultdict[str, dict[tuple[int, int], int]] = defaultdict(dict)
        for i, wanted in enumerate(self._case.expected_calls):
            for option, (_, pattern) in enumerate(wanted.options):
                rows = found[self._case.make_name_key(pattern.tool)]
                rows[i, option] = len(rows)
        return found

    @lazy
    def columns(self) -> Mapping[str, Sequence[int]]:
        """By tool its calls."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for step in self._case.trace.steps:
            found[self._case.make_name_key(step.call.name)].append(step.index)
        return found

    def find_steps(self, key: str) -> Sequence[int]:
        """The calls of a tool, which are the columns of its table."""
        return self.columns.get(key, ())

    def is_contested(self, key: str) -> bool:
        """Whether more than one pair has this name, so that the arguments must decide."""
        folds = self._case.matching.fold_names
        return folds or len(self.rows.get(key, ())) > 1 or len(self.find_steps(key)) > 1

    def find_row(self, expected: int, option: int) -> Floats:
        """The worth of an option with each call of its tool."""
        key = self._case.make_name_key(self._case.expected_calls[expected].options[option][1].tool)
        return self._require_table(key).values[self.rows[key][expected, option]]

    def find_agreeing(self, expected: int, option: int) -> frozenset[int]:
        """The calls of its tool that have an option's arguments. OverBudgetError where that was not worked out."""
        key = self._case.make_name_key(self._case.expected_calls[expected].options[option][1].tool)
        if key not in self.columns:
            return frozenset()
        agrees = self._require_table(key).agrees[self.rows[key][expected, option]]
        return frozenset([self.columns[key][int(n)] for n in agrees.nonzero()[0]])

    def _require_table(self, key: str) -> WorthTable:
        table = self._tables[key]
        if table is None:
            said = f"{len(self.rows[key])} calls of {key} were expected and {len(self.columns[key])} made"
            raise OverBudgetError(f"{said}, too many to compare each with each", MAX_ALIGNMENT_PAIRS)
        return table

    @lazy
    def crowds(self) -> frozenset[str]:
        """The tools with more to compare than may be compared."""
        return frozenset([key for key, table in self._tables.items() if table is None])

    def is_crowd(self, rows: Sequence[int]) -> bool:
        """Whether one of these expected calls is of such a tool."""
        keys = {
            self._case.make_name_key(pattern.tool) for i in rows for _, pattern in self._case.expected_calls[i].options
        }
        return not self.crowds.isdisjoint(keys)

    @lazy
    def _tables(self) -> Mapping[str, WorthTable | None]:
        """By tool that was both expected and called. Tools with less to compare come first."""
        sizes = {key: len(rows) * len(self.find_steps(key)) for key, rows in self.rows.items() if key in self.columns}
        tables: dict[str, WorthTable | None] = {}
        pairs, comparisons, chars = MAX_TABLED_PAIRS, MAX_ALIGNMENT_COMPARISONS, MAX_TEXT_CHARS
        for key in sorted(sizes, key=lambda key: (sizes[key], key)):
            pairs -= sizes[key]
            few = sizes[key] <= MAX_ALIGNMENT_PAIRS and pairs >= 0
            table = tables[key] = self._build_table(key, Allowance(comparisons, chars)) if few else None
            comparisons, chars = (
                comparisons - (table.comparisons if table else 0),
                chars - (table.chars if table else 0),
            )
        return tables

    def _build_table(self, key: str, allowance: Allowance) -> WorthTable | None:
        patterns = [self._case.expected_calls[i].options[option][1] for i, option in self.rows[key]]
        steps = [self._case.trace.steps[j] for j in self.columns[key]]
        return compare_all(patterns, steps, self._case.comparing, allowance)

    def find_groups(self) -> list[tuple[list[int], list[int]]]:
        """The expected calls and the calls made that can stand for each other, apart from all others."""
        root = {key: key for key in self._tables}

        def find(key: str) -> str:
            while root[key] != key:
                key = root[key] = root[root[key]]
            return key

        for wanted in self._case.expected_calls:
            keys = [key for _, pattern in wanted.options if (key := self._case.make_name_key(pattern.tool)) in root]
            for key in keys[1:]:
                root[find(key)] = find(keys[0])
        return self._list_groups({key: find(key) for key in root})

    def _list_groups(self, of: Mapping[str, str]) -> list[tuple[list[int], list[int]]]:
        rows: defaultdict[str, set[int]] = defaultdict(set)
        columns: defaultdict[str, set[int]] = defaultdict(set)
        for key, group in of.items():
            rows[group] |= {i for i, _ in self.rows[key]}
            columns[group] |= set(self.columns[key])
        return [(sorted(rows[group]), sorted(columns[group])) for group in rows]

"""The worth of a case's pairs, tool by tool, within the budget of one item."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from service.core.alignment.worth_table import Allowance, WorthTable, build_worth_table
from service.core.models.lazy import lazy
from service.core.work_limits import MAX_ALIGNMENT_COMPARISONS, MAX_ALIGNMENT_PAIRS, MAX_TEXT_CHARS, OverBudgetError

if TYPE_CHECKING:
    from service.core.alignment.matching import Floats
    from service.core.case import Case

MAX_TABLED_PAIRS = 4 * MAX_ALIGNMENT_PAIRS
"""The most pairs, of all tools together, whose worth is kept."""


class WorthTables:
    """The worth tables of a case, one for each tool. A tool goes by its key: its name as the rubric compares names."""

    def __init__(self, case: Case) -> None:
        self._case = case

    @lazy
    def rows(self) -> Mapping[str, Mapping[tuple[int, int], int]]:
        """The rows of each tool's table: (expected call, option) -> row."""
        found: defaultdict[str, dict[tuple[int, int], int]] = defaultdict(dict)
        for i, expected_call in enumerate(self._case.expected_calls):
            for option, (_, pattern) in enumerate(expected_call.options):
                rows = found[self._case.make_name_key(pattern.tool)]
                rows[i, option] = len(rows)
        return found

    @lazy
    def columns(self) -> Mapping[str, Sequence[int]]:
        """The columns of each tool's table: its calls, by step."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for step in self._case.trace.steps:
            found[self._case.make_name_key(step.call.name)].append(step.index)
        return found

    def find_steps(self, key: str) -> Sequence[int]:
        """Return the steps that call a tool, which are the columns of its table."""
        return self.columns.get(key, ())

    def is_contested(self, key: str) -> bool:
        """Whether more than one pair has this name, so that the arguments must decide."""
        folds = self._case.matching.fold_names
        return folds or len(self.rows.get(key, ())) > 1 or len(self.find_steps(key)) > 1

    def find_row(self, expected: int, option: int) -> Floats:
        """Return the worth of an option with each call of its tool."""
        key = self._case.make_name_key(self._case.expected_calls[expected].options[option][1].tool)
        return self._require_table(key).values[self.rows[key][expected, option]]

    def find_agreeing(self, expected: int, option: int) -> frozenset[int]:
        """Return the calls of its tool that have an option's arguments. Raise OverBudgetError where nobody compared them."""
        key = self._case.make_name_key(self._case.expected_calls[expected].options[option][1].tool)
        if key not in self.columns:
            return frozenset()
        agrees = self._require_table(key).agrees[self.rows[key][expected, option]]
        return frozenset([self.columns[key][int(n)] for n in agrees.nonzero()[0]])

    def _require_table(self, key: str) -> WorthTable:
        table = self._tables[key]
        if table is None:
            counts = f"{len(self.rows[key])} calls of {key} were expected and {len(self.columns[key])} made"
            raise OverBudgetError(f"{counts}, too many to compare each with each", MAX_ALIGNMENT_PAIRS)
        return table

    @lazy
    def oversized_tools(self) -> frozenset[str]:
        """The tools with more pairs than the budget allows to compare."""
        return frozenset([key for key, table in self._tables.items() if table is None])

    def has_oversized_tool(self, rows: Sequence[int]) -> bool:
        """Whether one of these expected calls is a call of such a tool."""
        keys = {
            self._case.make_name_key(pattern.tool) for i in rows for _, pattern in self._case.expected_calls[i].options
        }
        return not self.oversized_tools.isdisjoint(keys)

    @lazy
    def _tables(self) -> Mapping[str, WorthTable | None]:
        """The table of each tool that was both expected and called, None beyond the budget. Tools with fewer pairs go first."""
        sizes = {key: len(rows) * len(self.find_steps(key)) for key, rows in self.rows.items() if key in self.columns}
        tables: dict[str, WorthTable | None] = {}
        pairs, comparisons, chars = MAX_TABLED_PAIRS, MAX_ALIGNMENT_COMPARISONS, MAX_TEXT_CHARS
        for key in sorted(sizes, key=lambda key: (sizes[key], key)):
            pairs -= sizes[key]
            fits = sizes[key] <= MAX_ALIGNMENT_PAIRS and pairs >= 0
            table = tables[key] = self._build_table(key, Allowance(comparisons, chars)) if fits else None
            comparisons, chars = (
                comparisons - (table.comparisons if table else 0),
                chars - (table.chars if table else 0),
            )
        return tables

    def _build_table(self, key: str, allowance: Allowance) -> WorthTable | None:
        patterns = [self._case.expected_calls[i].options[option][1] for i, option in self.rows[key]]
        steps = [self._case.trace.steps[j] for j in self.columns[key]]
        return build_worth_table(patterns, steps, self._case.comparison_rules, allowance)

    def find_groups(self) -> list[tuple[list[int], list[int]]]:
        """Split the case into independent groups: expected calls, and the actual calls that can stand for them alone."""
        root = {key: key for key in self._tables}

        def find(key: str) -> str:
            while root[key] != key:
                key = root[key] = root[root[key]]
            return key

        for expected_call in self._case.expected_calls:
            options = expected_call.options
            keys = [key for _, pattern in options if (key := self._case.make_name_key(pattern.tool)) in root]
            for key in keys[1:]:
                root[find(key)] = find(keys[0])
        return self._list_groups({key: find(key) for key in root})

    def _list_groups(self, group_of: Mapping[str, str]) -> list[tuple[list[int], list[int]]]:
        rows: defaultdict[str, set[int]] = defaultdict(set)
        columns: defaultdict[str, set[int]] = defaultdict(set)
        for key, group in group_of.items():
            rows[group] |= {i for i, _ in self.rows[key]}
            columns[group] |= set(self.columns[key])
        return [(sorted(rows[group]), sorted(columns[group])) for group in rows]

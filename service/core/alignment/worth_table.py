"""Work out the worth of every pair of an expected call and a call of its tool, with few comparisons.

Pairs that compare alike have the same worth. Where arguments are compared by typed equality alone, a pair's worth follows from
which arguments each side has and which of them are equal. So one pair of each such kind is compared, and all others of that
kind take its worth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from service.core.expectations.expectation import CallPattern
from service.core.expectations.result_match import wants_structure
from service.core.json.contents import Contents
from service.core.results.structure import read_value
from service.core.trace import Step
from service.core.work_limits import MAX_ALIGNMENT_COMPARISONS, MAX_TEXT_CHARS, count_text_chars

T = TypeVar("T")

if TYPE_CHECKING:
    from numpy import bool_, float64, int64
    from numpy.typing import NDArray

    Floats = NDArray[float64]
    Flags = NDArray[bool_]
    Numbers = NDArray[int64]

FEW_PAIRS = 256
"""Up to this many pairs are compared one by one."""
EQUALITY_BITS = 40
"""Bits of a pair's kind that say which parts are equal (each argument, the result as it is and as read); the rest number the
shapes of both sides."""


class PairWorth(NamedTuple):
    """The worth of a pair to the alignment, and whether the call has all the arguments that the pattern asks for."""

    value: float
    agrees: bool


class ComparisonRules(NamedTuple):
    """How to compare pairs."""

    worth: Callable[[CallPattern, Step], PairWorth]
    is_plain: Callable[[CallPattern], bool]
    """Whether a pattern is compared with a call by typed equality alone."""
    cost: Callable[[CallPattern], int]
    """The cost of comparing the pattern once; a comparison by equality costs 1."""
    defaults: Callable[[Step], Mapping[str, object]]
    """The schema's defaults for arguments that a call of this tool lacks."""


class WorthTable(NamedTuple):
    """The worth of each pair: a row for each pattern, a column for each step."""

    values: Floats
    agrees: Flags
    comparisons: int
    """Comparisons made to fill it."""
    chars: int
    """Characters that matchers read to fill it."""


class Allowance(NamedTuple):
    """The work that may still be done."""

    comparisons: int = MAX_ALIGNMENT_COMPARISONS
    chars: int = MAX_TEXT_CHARS


def build_worth_table(
    patterns: Sequence[CallPattern], steps: Sequence[Step], rules: ComparisonRules, allowance: Allowance
) -> WorthTable | None:
    """Compare every pattern with every step, all of one tool; None where that goes over the allowance."""
    import numpy as np  # noqa: PLC0415 (0.2 s and 30 MB that most traces never need)

    rows, row_of_pattern = _fold_items(patterns, _iter_pattern_keys(patterns, rules))
    columns, column_of_step = _fold_items(
        steps, _iter_step_keys(steps, with_results=any(p.says_result for p in patterns))
    )
    others = [row for row in rows if not rules.is_plain(row)]
    chars = _count_chars(others, columns)
    if (
        chars > allowance.chars
        or sum([_weigh_pattern(row, rules) for row in others]) * len(columns) > allowance.comparisons
    ):
        return None
    samples, kinds = _sort_kinds(rows, columns, rules)
    costs = [_weigh_pattern(row, rules) for row in rows]
    comparisons = sum([costs[i] for i, _ in samples])
    if comparisons > allowance.comparisons:
        return None
    worths = [rules.worth(rows[i], columns[j]) for i, j in samples]
    kinds = kinds[np.ix_(row_of_pattern, column_of_step)]
    values = np.array([worth.value for worth in worths], dtype=float)[kinds]
    agrees = np.array([worth.agrees for worth in worths], dtype=bool)[kinds]
    return WorthTable(values, agrees, comparisons, chars)


def _fold_items(items: Sequence[T], keys: Iterable[Hashable]) -> tuple[list[T], list[int]]:
    """Return the first item of each key, and for every item the index of its key's first item among these."""
    numbers: dict[Hashable, int] = {}
    numbering = [numbers.setdefault(key, len(numbers)) for key in keys]
    firsts = dict(
        zip(reversed(numbering), reversed(items), strict=True)
    )  # reversed, so that the first item of a key wins
    return [firsts[number] for number in range(len(firsts))], numbering


def _iter_pattern_keys(patterns: Iterable[CallPattern], rules: ComparisonRules) -> Iterator[Hashable]:
    contents = Contents(exact=True)
    for pattern in patterns:
        values = (pattern.args, pattern.result)
        content = contents.number(values) if rules.is_plain(pattern) else pattern.model_dump_json(exclude={"reason"})
        yield content, pattern.extra_args, pattern.says_result, tuple(sorted(pattern.weights.items()))


def _iter_step_keys(steps: Iterable[Step], *, with_results: bool) -> Iterator[Hashable]:
    contents = Contents(exact=True)
    for step in steps:
        returned = (step.result.content,) if with_results and step.result else None
        yield step.call.name, contents.number(step.call.arguments), contents.number(returned)


def _weigh_pattern(pattern: CallPattern, rules: ComparisonRules) -> int:
    """Return how many comparisons comparing the pattern once counts as."""
    return max(1, len(pattern.args or ())) * rules.cost(pattern)


MAX_CHARACTER_COST = 10
"""What a character costs that the dearest matcher reads."""


def _count_chars(patterns: Sequence[CallPattern], steps: Sequence[Step]) -> int:
    """Count the characters read when each of these patterns is compared with each of these steps, by their cost."""
    expected = count_text_chars([pattern.model_dump(mode="json", include={"args", "result"}) for pattern in patterns])
    actual = count_text_chars(
        [[step.call.arguments, step.result and step.result.content] for step in steps if patterns]
    )
    return MAX_CHARACTER_COST * (expected * len(steps) + actual * len(patterns))


Pairs = list[tuple[int, int]]


def _sort_kinds(rows: Sequence[CallPattern], columns: Sequence[Step], rules: ComparisonRules) -> tuple[Pairs, Numbers]:
    """Return one pair of each kind, and the kind of every pair."""
    import numpy as np  # noqa: PLC0415

    few = len(rows) * len(columns) <= FEW_PAIRS
    plain = [
        i for i, row in enumerate(rows) if not few and len(row.args or ()) <= EQUALITY_BITS - 2 and rules.is_plain(row)
    ]
    others = sorted(set(range(len(rows))) - set(plain))
    kinds = np.empty((len(rows), len(columns)), dtype=np.int64)
    samples = [(i, j) for i in others for j in range(len(columns))]
    kinds[others] = np.arange(len(samples)).reshape(len(others), len(columns))
    if plain:
        keys = _number_kinds([rows[i] for i in plain], columns, rules)
        _, firsts, numbers = np.unique(keys.ravel(), return_index=True, return_inverse=True)
        kinds[plain] = len(samples) + numbers.reshape(keys.shape)
        samples += [(plain[n // len(columns)], n % len(columns)) for n in map(int, firsts)]
    return samples, kinds


def _number_kinds(rows: Sequence[CallPattern], columns: Sequence[Step], rules: ComparisonRules) -> Numbers:
    """Number each pair by its kind: which arguments each side has, and which of them are equal."""
    import numpy as np  # noqa: PLC0415

    contents = Contents()
    tools = {column.call.name: rules.defaults(column) for column in columns}
    _, row_shapes = _fold_items(rows, [_describe_row(row, tools, contents) for row in rows])
    _, column_shapes = _fold_items(columns, [_describe_column(column, rules, contents) for column in columns])
    shapes = np.add.outer(np.array(row_shapes) * (max(column_shapes) + 1), np.array(column_shapes))
    keys: Numbers = shapes.astype(np.int64) << EQUALITY_BITS
    read = any(wants_structure(row.result) for row in rows)
    actual = _group_by_name([_list_actual(column, read=read) for column in columns], contents)
    for name, expected in _group_by_name([_list_expected(row) for row in rows], contents).items():
        if name in actual:
            i, bits, expected_values = expected.T
            j, _, actual_values = actual[name].T
            keys[np.ix_(i, j)] |= np.equal.outer(expected_values, actual_values).astype(np.int64) << bits[:, None]
    return keys


NamedValues = list[tuple[str, object]]
"""The arguments by "/name", the result as it is, and the result as read (where its text spells JSON)."""


def _list_expected(row: CallPattern) -> NamedValues:
    values: NamedValues = [(_RESULT, row.result)] if row.says_result else []
    values += [(_READ_RESULT, row.result)] if wants_structure(row.result) else []
    return values + sorted((f"/{name}", value) for name, value in (row.args or {}).items())


def _list_actual(column: Step, *, read: bool) -> NamedValues:
    values: NamedValues = [(_RESULT, column.result.content)] if column.result else []
    reading = read_value(column.result.content) if column.result and read else None
    values += [(_READ_RESULT, reading.value)] if reading else []
    return values + [(f"/{name}", value) for name, value in (column.call.arguments or {}).items()]


_RESULT, _READ_RESULT = "result", "read result"


def _group_by_name(lists: Iterable[NamedValues], contents: Contents) -> dict[str, Numbers]:
    """Group the values by name: an array of rows (index of the list, index in the list, number of the value) for each."""
    import numpy as np  # noqa: PLC0415

    found: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for owner, values in enumerate(lists):
        for n, (name, value) in enumerate(values):
            found[name].append((owner, n, contents.number(value)))
    return {name: np.array(rows, dtype=np.int64) for name, rows in found.items()}


def _describe_row(row: CallPattern, tools: Mapping[str, Mapping[str, object]], contents: Contents) -> Hashable:
    names = None if row.args is None else tuple(sorted(row.args))
    defaulted = [_find_defaulted(tools[tool], row.args or {}, contents) for tool in sorted(tools)]
    return names, row.extra_args, row.says_result, tuple(sorted(row.weights.items())), tuple(defaulted)


def _describe_column(column: Step, rules: ComparisonRules, contents: Contents) -> Hashable:
    args = column.call.arguments
    names = None if args is None else tuple(sorted(args))
    return column.call.name, names, column.result is None, _find_defaulted(rules.defaults(column), args or {}, contents)


def _find_defaulted(defaults: Mapping[str, object], args: Mapping[str, object], contents: Contents) -> tuple[str, ...]:
    """List the arguments whose value is the default."""
    both = sorted(defaults.keys() & args.keys())
    return tuple([name for name in both if contents.number(defaults[name]) == contents.number(args[name])])

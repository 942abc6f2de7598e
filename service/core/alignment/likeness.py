"""What every pair of an expected call and a call of its tool is worth, with few comparisons.

Pairs that compare alike are worth alike. Where arguments are held against each other by typed equality alone, a pair's worth
follows from which arguments each side has and which of them are equal. So one pair of each such kind is compared, and all
others of that kind take its worth.
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
"""So few pairs are compared one by one."""
MAX_BITS = 40
"""What of a pattern may equal what of a call, in one number beside the kinds of both: arguments, and the result in two ways."""


class PairWorth(NamedTuple):
    """What pairing two calls is worth to the alignment, and whether all arguments are those asked for."""

    value: float
    agrees: bool


class ComparisonRules(NamedTuple):
    """How pairs are compared."""

    worth: Callable[[CallPattern, Step], PairWorth]
    is_plain: Callable[[CallPattern], bool]
    """Whether a pattern is held against a call by typed equality alone."""
    cost: Callable[[CallPattern], int]
    """What one comparison of the pattern costs, where one by equality costs 1."""
    defaults: Callable[[Step], Mapping[str, object]]
    """What stands in for arguments that a call of this tool lacks."""


class WorthTable(NamedTuple):
    """The worth of each pair: patterns by steps."""

    values: Floats
    agrees: Flags
    comparisons: int
    """How many were made."""
    chars: int
    """How many characters matchers read."""


class Allowance(NamedTuple):
    """How much may still be done."""

    comparisons: int = MAX_ALIGNMENT_COMPARISONS
    chars: int = MAX_TEXT_CHARS


def compare_all(
    patterns: Sequence[CallPattern], steps: Sequence[Step], how: ComparisonRules, allowance: Allowance
) -> WorthTable | None:
    """The worth of every pattern with every step, all of one tool; None where that goes over the allowance."""
    import numpy as np  # noqa: PLC0415 (0.2 s and 30 MB that most traces never need)

    rows, of_rows = _fold_items(patterns, _iter_pattern_keys(patterns, how))
    columns, of_columns = _fold_items(steps, _iter_step_keys(steps, with_results=any(p.says_result for p in patterns)))
    others = [row for row in rows if not how.is_plain(row)]
    chars = _count_chars(others, columns)
    if (
        chars > allowance.chars
        or sum([_weigh_pattern(row, how) for row in others]) * len(columns) > allowance.comparisons
    ):
        return None
    first, kinds = _sort_kinds(rows, columns, how)
    weights = [_weigh_pattern(row, how) for row in rows]
    comparisons = sum([weights[i] for i, _ in first])
    if comparisons > allowance.comparisons:
        return None
    found = [how.worth(rows[i], columns[j]) for i, j in first]
    kinds = kinds[np.ix_(of_rows, of_columns)]
    values = np.array([one.value for one in found], dtype=float)[kinds]
    agrees = np.array([one.agrees for one in found], dtype=bool)[kinds]
    return WorthTable(values, agrees, comparisons, chars)


def _fold_items(items: Sequence[T], keys: Iterable[Hashable]) -> tuple[list[T], list[int]]:
    """One item of each key, and for every item the place of its like among these."""
    places: dict[Hashable, int] = {}
    like = [places.setdefault(key, len(places)) for key in keys]
    kept = dict(zip(reversed(like), reversed(items), strict=True))  # of those that are alike the first
    return [kept[place] for place in range(len(kept))], like


def _iter_pattern_keys(patterns: Iterable[CallPattern], how: ComparisonRules) -> Iterator[Hashable]:
    contents = Contents(exact=True)
    for pattern in patterns:
        said = (pattern.args, pattern.result)
        same = contents.number(said) if how.is_plain(pattern) else pattern.model_dump_json(exclude={"reason"})
        yield same, pattern.extra_args, pattern.says_result, tuple(sorted(pattern.weights.items()))


def _iter_step_keys(steps: Iterable[Step], *, with_results: bool) -> Iterator[Hashable]:
    contents = Contents(exact=True)
    for step in steps:
        returned = (step.result.content,) if with_results and step.result else None
        yield step.call.name, contents.number(step.call.arguments), contents.number(returned)


def _weigh_pattern(pattern: CallPattern, how: ComparisonRules) -> int:
    """What comparing it once counts as."""
    return max(1, len(pattern.args or ())) * how.cost(pattern)


MOST_A_CHARACTER_COSTS = 10
"""As for the matchers that cost most."""


def _count_chars(patterns: Sequence[CallPattern], steps: Sequence[Step]) -> int:
    """How many characters are read where each of these patterns meets each of these steps."""
    asked = count_text_chars([pattern.model_dump(mode="json", include={"args", "result"}) for pattern in patterns])
    given = count_text_chars([[step.call.arguments, step.result and step.result.content] for step in steps if patterns])
    return MOST_A_CHARACTER_COSTS * (asked * len(steps) + given * len(patterns))


Pairs = list[tuple[int, int]]


def _sort_kinds(rows: Sequence[CallPattern], columns: Sequence[Step], how: ComparisonRules) -> tuple[Pairs, Numbers]:
    """A pair of each kind, and the kind of every pair."""
    import numpy as np  # noqa: PLC0415

    few = len(rows) * len(columns) <= FEW_PAIRS
    plain = [i for i, row in enumerate(rows) if not few and len(row.args or ()) <= MAX_BITS - 2 and how.is_plain(row)]
    others = sorted(set(range(len(rows))) - set(plain))
    kinds = np.empty((len(rows), len(columns)), dtype=np.int64)
    first = [(i, j) for i in others for j in range(len(columns))]
    kinds[others] = np.arange(len(first)).reshape(len(others), len(columns))
    if plain:
        keys = _number_kinds([rows[i] for i in plain], columns, how)
        _, at, same = np.unique(keys.ravel(), return_index=True, return_inverse=True)
        kinds[plain] = len(first) + same.reshape(keys.shape)
        first += [(plain[n // len(columns)], n % len(columns)) for n in map(int, at)]
    return first, kinds


def _number_kinds(rows: Sequence[CallPattern], columns: Sequence[Step], how: ComparisonRules) -> Numbers:
    """A number for each pair, the same for pairs of one kind: who has which arguments, and which of them are equal."""
    import numpy as np  # noqa: PLC0415

    contents = Contents()
    tools = {column.call.name: how.defaults(column) for column in columns}
    _, row_shapes = _fold_items(rows, [_describe_row(row, tools, contents) for row in rows])
    _, column_shapes = _fold_items(columns, [_describe_column(column, how, contents) for column in columns])
    shapes = np.add.outer(np.array(row_shapes) * (max(column_shapes) + 1), np.array(column_shapes))
    keys: Numbers = shapes.astype(np.int64) << MAX_BITS
    reads = any(wants_structure(row.result) for row in rows)
    given = _group_by_name([_list_actual(column, reads=reads) for column in columns], contents)
    for name, asked in _group_by_name([_list_expected(row) for row in rows], contents).items():
        if name in given:
            i, bits, wanted = asked.T
            j, _, made = given[name].T
            keys[np.ix_(i, j)] |= np.equal.outer(wanted, made).astype(np.int64) << bits[:, None]
    return keys


Named = list[tuple[str, object]]
"""Values by name: those of a result as it is, of what it spells, and of the arguments."""


def _list_expected(row: CallPattern) -> Named:
    returned: Named = [(_RESULT, row.result)] if row.says_result else []
    returned += [(_SPELT, row.result)] if wants_structure(row.result) else []
    return returned + sorted((f"/{name}", value) for name, value in (row.args or {}).items())


def _list_actual(column: Step, *, reads: bool) -> Named:
    returned: Named = [(_RESULT, column.result.content)] if column.result else []
    spelt = read_value(column.result.content) if column.result and reads else None
    returned += [(_SPELT, spelt.value)] if spelt else []
    return returned + [(f"/{name}", value) for name, value in (column.call.arguments or {}).items()]


_RESULT, _SPELT = "result", "spelt"


def _group_by_name(lists: Iterable[Named], contents: Contents) -> dict[str, Numbers]:
    """For each name rows of three: whose, at which place of its list, and the number of the value."""
    import numpy as np  # noqa: PLC0415

    found: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for whose, values in enumerate(lists):
        for place, (name, value) in enumerate(values):
            found[name].append((whose, place, contents.number(value)))
    return {name: np.array(rows, dtype=np.int64) for name, rows in found.items()}


def _describe_row(row: CallPattern, tools: Mapping[str, Mapping[str, object]], contents: Contents) -> Hashable:
    names = None if row.args is None else tuple(sorted(row.args))
    standing_in = [_find_defaulted(tools[tool], row.args or {}, contents) for tool in sorted(tools)]
    return names, row.extra_args, row.says_result, tuple(sorted(row.weights.items())), tuple(standing_in)


def _describe_column(column: Step, how: ComparisonRules, contents: Contents) -> Hashable:
    given = column.call.arguments
    names = None if given is None else tuple(sorted(given))
    return column.call.name, names, column.result is None, _find_defaulted(how.defaults(column), given or {}, contents)


def _find_defaulted(defaults: Mapping[str, object], given: Mapping[str, object], contents: Contents) -> tuple[str, ...]:
    """The names whose value is what would stand in for it."""
    both = sorted(defaults.keys() & given.keys())
    return tuple([name for name in both if contents.number(defaults[name]) == contents.number(given[name])])

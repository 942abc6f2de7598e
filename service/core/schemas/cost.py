"""Estimate the cost of validating a value against a schema before the work is done.

A few kilobytes of schema can ask for more work than any machine can do: definitions that name the next one twice double the
work at each level (jsonschema-rs 0.60 ran for minutes), a list of all errors takes a stack frame for each reference on the way
(it overflowed the stack), and a counted repetition takes time for each of its states (110 µs a character). So the work is
counted first. A unit is one visit of a schema object to a part of the value, 10 to 20 ns without short cuts; a long `enum`
costs more, and so does a `pattern`, by the character.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from math import inf

from pydantic import JsonValue

from service.core.schemas.references import References
from service.core.schemas.tree import Node, iter_applied, iter_in_place, iter_subschemas, looks_at_parts

MAX_UNITS = 20_000_000
"""The most units of one check: some 0.2 to 0.4 s."""
MAX_LISTED_UNITS = 20_000
"""The most units of a list of all violations of one value."""
COMPARISONS_OF_A_LISTED_UNIT = 20
"""The price of a unit in a list of violations, which consists of Python objects: 10 to 20 µs for each unit."""

MAX_UNCOUNTED_UNITS = 20_000
"""Up to this upper bound of a check's units, counting them exactly (some 7 µs a visit) does not pay."""
MAX_UNCOUNTED_LISTED_UNITS = 200
"""The same bound for a list of violations."""
UNITS_OF_A_COMPARISON = 30

_MAX_PAIRS = 100_000
_MAX_LEVELS = 400  # of keywords and references on the way into a value


BYTES_OF_A_LEVEL = 5
"""The least bytes of an array or an object that holds another one."""


def measure_size(value: JsonValue) -> float:
    """Measure a value in bytes: each part and each character takes at least one; infinite where the nesting is too deep.

    >>> measure_size("four"), measure_size([[]]) - measure_size([])
    (9, 5)
    """
    try:
        return len(marshal.dumps(value, 2))
    except ValueError:  # nested in thousands of levels
        return inf


class ValidationCost:
    """The cost of one schema. `per_character` is the cost in units of one pattern and one character of text."""

    def __init__(self, references: References, *, per_character: int) -> None:
        self._references = references
        self._per_character = per_character
        self._objects, patterns = _expand_references(references)
        self._of_text = patterns * per_character if patterns else 0
        self._fixed = _find_fixed(references)

    def measure(self, value: JsonValue, size: float) -> tuple[int, bool]:
        """Return the most that checking `value` takes, in comparisons of two values, and whether it is within MAX_UNITS.

        `size` is what `measure_size` returns for the value.
        """
        most = size * (self._objects + self._of_text)  # nearly every call ends here
        if most <= MAX_UNCOUNTED_UNITS:
            return int(most) // UNITS_OF_A_COMPARISON, True
        units = self._count(value, self._per_character)
        return int(min(units, MAX_UNITS)) // UNITS_OF_A_COMPARISON, min(most, units) <= MAX_UNITS

    def measure_listing(self, value: JsonValue, size: float) -> int | None:
        """Return the cost, in comparisons, of listing all violations of a value that does not fit; None beyond the limit."""
        most = size * self._objects
        units = most if most <= MAX_UNCOUNTED_LISTED_UNITS else min(most, self._count(value, 0))
        return int(units) * COMPARISONS_OF_A_LISTED_UNIT if units <= MAX_LISTED_UNITS else None

    def _count(self, value: JsonValue, per_character: int) -> float:
        return _VisitCounter(self._references, self._fixed, per_character).count(self._references.root, value, 0)


class _VisitCounter:
    """Counts visits. It examines each distinct pair of schema object and part once and multiplies its repeats."""

    def __init__(self, references: References, fixed: Mapping[int, float], per_character: int) -> None:
        self._references = references
        self._fixed = fixed
        self._per_character = per_character
        self._known: dict[tuple[int, int], float] = {}

    def count(self, node: Node, value: JsonValue, level: int) -> float:
        fixed = self._fixed.get(id(node))
        if fixed is not None:
            return fixed
        key = id(node), id(value)
        if key in self._known:
            return self._known[key]
        if level > _MAX_LEVELS or len(self._known) > _MAX_PAIRS:
            return inf
        total = _count_own(node) + self._per_character * _count_read_chars(node, value)
        for each in _list_in_place(self._references, node):
            total += self.count(each, value, level + 1)
        for each, part in iter_applied(node, value):
            total += self.count(each, part, level + 1)
        self._known[key] = total
        return total


def _find_fixed(references: References) -> dict[int, float]:
    """Find the schema objects that cost the same for any value, as nothing in them looks at parts or characters; their units."""
    nodes = {id(node): node for node in references}
    graph = {key: [id(each) for each in _list_in_place(references, node)] for key, node in nodes.items()}
    fixed: dict[int, float] = {}
    for key in TopologicalSorter(graph).static_order():  # references in place never lead in circles
        node = nodes[key]
        if not looks_at_parts(node) and "pattern" not in node and all(each in fixed for each in graph[key]):
            fixed[key] = _count_own(node) + sum(fixed[each] for each in graph[key])
    return fixed


def _list_in_place(references: References, node: Node) -> tuple[Node, ...]:
    return (*iter_in_place(node), *references.find_targets(node))


def _count_own(node: Node) -> float:
    options = node.get("enum")
    if not isinstance(options, list):
        return 1
    return 1 + sum(8 if isinstance(each, dict | list) else 1 for each in options)


def count_patterns(node: Node) -> int:
    """Count the patterns of `node` itself."""
    by_pattern = node.get("patternProperties")
    return ("pattern" in node) + (len(by_pattern) if isinstance(by_pattern, dict) else 0)


def _count_read_chars(node: Node, value: JsonValue) -> int:
    """Count the characters that the patterns of `node` read, for each pattern anew."""
    if isinstance(value, str):
        return len(value) if "pattern" in node else 0
    by_pattern = node.get("patternProperties")
    if isinstance(value, dict) and isinstance(by_pattern, dict):
        return len(by_pattern) * sum(map(len, value))
    return 0


def _expand_references(references: References) -> tuple[float, float]:
    """Count the units of all schema objects and all patterns with every reference written out; infinite if one recurs."""
    graph: dict[int, list[int]] = {}
    for node in references:
        children = [child for _, child in iter_subschemas(node)]
        graph[id(node)] = [id(each) for each in (*children, *references.find_targets(node))]
    own = {id(node): (_count_own(node), count_patterns(node)) for node in references}
    units: dict[int, float] = {}
    patterns: dict[int, float] = {}
    try:
        for key in TopologicalSorter(graph).static_order():
            units[key] = own[key][0] + sum(units[each] for each in graph[key])
            patterns[key] = own[key][1] + sum(patterns[each] for each in graph[key])
    except CycleError:
        return inf, inf
    return units[id(references.root)], patterns[id(references.root)]

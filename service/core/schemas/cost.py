"""What checking a value against a schema costs, known before it is paid.

A few kilobytes of schema can ask for more work than any machine has: definitions that name the next one twice double
the work at each level (jsonschema-rs 0.60 ran for minutes), a list of all errors takes a stack frame for each
reference on the way (it overflowed the stack), and a counted repetition takes time for each of its states (110 µs a
character). So the work is counted first. A unit is one visit of a schema object to a part of the value, 10 to 20 ns
without short cuts; more for an `enum` of many and for a `pattern` by the character.
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
"""Some 0.2 to 0.4 s."""
MAX_LISTED = 20_000
"""Units that a list of all violations of one value may take."""
COMPARISONS_OF_A_LISTED_UNIT = 20
"""A list of violations is made of Python objects, 10 to 20 µs for each unit."""

MAX_UNCOUNTED = 20_000
"""Units of a check that are not worth counting exactly, at some 7 µs a visit."""
MAX_UNCOUNTED_LISTED = 200
"""The same of a list of violations."""
UNITS_OF_A_COMPARISON = 30

_MAX_PAIRS = 100_000
_MAX_LEVELS = 400  # of keywords and references on the way into a value


BYTES_OF_A_LEVEL = 5
"""What an array or an object takes at least that holds another."""


def measure_size(value: JsonValue) -> float:
    """The bytes of a value, of which each part and each character takes one at least; infinite where that cannot be told.

    >>> measure_size("four"), measure_size([[]]) - measure_size([])
    (9, 5)
    """
    try:
        return len(marshal.dumps(value, 2))
    except ValueError:  # nested in thousands of levels
        return inf


class Cost:
    """The cost of one schema. `per_character` is the cost in units of one pattern and one character of text."""

    def __init__(self, references: References, *, per_character: int) -> None:
        self._references = references
        self._per_character = per_character
        self._objects, patterns = _expand_references(references)
        self._of_text = patterns * per_character if patterns else 0
        self._fixed = _find_fixed(references)

    def measure(self, value: JsonValue, size: float) -> tuple[int, bool]:
        """What checking `value` takes at most, in comparisons of two values, and whether that is within MAX_UNITS.

        `size`: as `measure_size` has it.
        """
        most = size * (self._objects + self._of_text)  # nearly every call is settled by it
        if most <= MAX_UNCOUNTED:
            return int(most) // UNITS_OF_A_COMPARISON, True
        units = self._count(value, self._per_character)
        return int(min(units, MAX_UNITS)) // UNITS_OF_A_COMPARISON, min(most, units) <= MAX_UNITS

    def measure_listing(self, value: JsonValue, size: float) -> int | None:
        """What listing all violations of `value`, already found not to fit, takes in comparisons; None beyond MAX_LISTED."""
        most = size * self._objects
        units = most if most <= MAX_UNCOUNTED_LISTED else min(most, self._count(value, 0))
        return int(units) * COMPARISONS_OF_A_LISTED_UNIT if units <= MAX_LISTED else None

    def _count(self, value: JsonValue, per_character: int) -> float:
        return _VisitCount(self._references, self._fixed, per_character).of(self._references.root, value, 0)


class _VisitCount:
    """Counts visits. Each distinct pair of schema object and part is looked at once, its repeats are multiplied."""

    def __init__(self, references: References, fixed: Mapping[int, float], per_character: int) -> None:
        self._references = references
        self._fixed = fixed
        self._per_character = per_character
        self._known: dict[tuple[int, int], float] = {}

    def of(self, node: Node, value: JsonValue, level: int) -> float:
        fixed = self._fixed.get(id(node))
        if fixed is not None:
            return fixed
        key = id(node), id(value)
        if key in self._known:
            return self._known[key]
        if level > _MAX_LEVELS or len(self._known) > _MAX_PAIRS:
            return inf
        total = _count_own(node) + self._per_character * _count_read(node, value)
        for each in _list_in_place(self._references, node):
            total += self.of(each, value, level + 1)
        for each, part in iter_applied(node, value):
            total += self.of(each, part, level + 1)
        self._known[key] = total
        return total


def _find_fixed(references: References) -> dict[int, float]:
    """The units of each schema object that takes the same for any value: nothing in it looks at parts or characters."""
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
    """The units one visit of `node` itself takes."""
    listed = node.get("enum")
    if not isinstance(listed, list):
        return 1
    return 1 + sum(8 if isinstance(each, dict | list) else 1 for each in listed)


def count_patterns(node: Node) -> int:
    """How many patterns `node` itself has."""
    named = node.get("patternProperties")
    return ("pattern" in node) + (len(named) if isinstance(named, dict) else 0)


def _count_read(node: Node, value: JsonValue) -> int:
    """The characters that the patterns of `node` read, each pattern for itself."""
    if isinstance(value, str):
        return len(value) if "pattern" in node else 0
    named = node.get("patternProperties")
    if isinstance(value, dict) and isinstance(named, dict):
        return len(named) * sum(map(len, value))
    return 0


def _expand_references(references: References) -> tuple[float, float]:
    """The units of all schema objects and the number of patterns once every reference is written out; infinite if it recurs."""
    graph = {
        id(node): [
            id(each) for each in (*(child for _, child in iter_subschemas(node)), *references.find_targets(node))
        ]
        for node in references
    }
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

"""Find the schemas inside a schema: which keywords hold schemas, and which of these apply to the same value.

Nothing else is read as a schema: a property that happens to be called "type", or an `enum` that lists an object with a "type",
is data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from pydantic import JsonValue

from service.core.json.members import find_object
from service.core.json.pointers import escape_token

Node = dict[str, JsonValue]
"""An object schema."""

_IN_PLACE_ONE = frozenset({"not", "if", "then", "else"})
_IN_PLACE_MANY = frozenset({"allOf", "anyOf", "oneOf"})
_IN_PLACE_NAMED = frozenset({"dependentSchemas", "dependencies"})
_ITEMS = ("items", "additionalItems", "unevaluatedItems", "contains")
_OTHERS = ("additionalProperties", "unevaluatedProperties")
_ONE = _IN_PLACE_ONE | {*_ITEMS, *_OTHERS, "propertyNames", "contentSchema"}
_MANY = _IN_PLACE_MANY | {"prefixItems", "items"}
_NAMED = _IN_PLACE_NAMED | {"properties", "patternProperties", "$defs", "definitions"}
_INTO_PARTS = frozenset({*_ITEMS, *_OTHERS, "prefixItems", "properties", "patternProperties", "propertyNames"})


class SchemaProblem(ValueError):  # noqa: N818 (what is wrong with an input is a problem, as in errors.py)
    """A schema cannot be used. `path` is a JSON pointer into the schema, "" where the place is unknown."""

    def __init__(self, message: str, path: str = "") -> None:
        self.message = message
        self.path = path
        super().__init__(f"{path}: {message}" if path else message)


def is_node(value: JsonValue) -> TypeGuard[Node]:
    """Whether a value in a schema's place is a schema with keywords, and not a boolean."""
    return isinstance(value, dict)


def iter_subschemas(node: Node) -> Iterator[tuple[str, Node]]:
    """Yield every object schema directly inside `node`, with its pointer from there."""
    yield from _iter_children(node, one=_ONE, many=_MANY, named=_NAMED)


def iter_in_place(node: Node) -> Iterator[Node]:
    """Yield the object schemas inside `node` that apply to the same value as `node`; references are not followed."""
    return (child for _, child in _iter_children(node, one=_IN_PLACE_ONE, many=_IN_PLACE_MANY, named=_IN_PLACE_NAMED))


def iter_applied(node: Node, value: JsonValue) -> Iterator[tuple[Node, JsonValue]]:
    """Yield the object schemas inside `node` that apply to parts of `value`, each with its part; never too few."""
    if isinstance(value, dict):
        yield from _iter_members(node, value)
    elif isinstance(value, list):
        yield from _iter_items(node, value)


def looks_at_parts(node: Node) -> bool:
    """Whether `node` itself has a keyword that may apply to parts of a value."""
    return not _INTO_PARTS.isdisjoint(node)


def walk_schema(node: Node, at: str = "") -> Iterator[tuple[str, Node]]:
    """Yield `node` and every schema below it, outer before inner, with their pointers. The depth limit of schemas bounds it."""
    yield at, node
    for suffix, child in iter_subschemas(node):
        yield from walk_schema(child, at + suffix)


def _iter_children(
    node: Node, *, one: frozenset[str], many: frozenset[str], named: frozenset[str]
) -> Iterator[tuple[str, Node]]:
    for key, value in node.items():
        if isinstance(value, list):
            yield from ((f"/{key}/{i}", each) for i, each in enumerate(value) if key in many and is_node(each))
        elif key in one and is_node(value):
            yield f"/{key}", value
        elif key in named and is_node(value):
            yield from ((f"/{key}/{escape_token(name)}", each) for name, each in value.items() if is_node(each))


def _iter_members(node: Node, value: dict[str, JsonValue]) -> Iterator[tuple[Node, JsonValue]]:
    declared = find_object(node, "properties")
    yield from ((each, value[name]) for name, each in declared.items() if name in value and is_node(each))
    by_pattern = find_object(node, "patternProperties")
    yield from ((each, part) for each in by_pattern.values() if is_node(each) for part in value.values())
    for each in map(node.get, _OTHERS):
        if is_node(each):
            yield from ((each, part) for name, part in value.items() if name not in declared)
    names = node.get("propertyNames")
    if is_node(names):
        yield from ((names, name) for name in value)


def _iter_items(node: Node, value: list[JsonValue]) -> Iterator[tuple[Node, JsonValue]]:
    for key in ("prefixItems", "items"):
        each = node.get(key)
        if isinstance(each, list):
            yield from ((first, part) for first, part in zip(each, value, strict=False) if is_node(first))
    for each in map(node.get, _ITEMS):
        if is_node(each):
            yield from ((each, part) for part in value)

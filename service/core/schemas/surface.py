"""Collect what a schema says about its top-level properties: the arguments of a tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import JsonValue

from service.core.schemas.dialects import REF_ALONE_DRAFTS, Dialect
from service.core.schemas.references import References
from service.core.schemas.tree import Node, is_node, iter_in_place

_OPEN = ("additionalProperties", "unevaluatedProperties")
_UNFOLLOWED = ("$dynamicRef", "$recursiveRef")


@dataclass(frozen=True, slots=True)
class Surface:
    """The top-level properties of a schema, with local references and combinators followed.

    `properties`: every name declared in any branch; None where the schema declares none or may declare more elsewhere.
    `required`: the names that every value must have. `defaults`: the `default` of each property that certainly applies.
    `patterns`: the expressions of `patternProperties`. `silent`: the schema declares properties and says nothing about further
    ones.
    """

    properties: frozenset[str] | None = None
    required: frozenset[str] = frozenset()
    defaults: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType(dict[str, JsonValue]()))
    patterns: tuple[str, ...] = ()
    silent: bool = False


OPAQUE = Surface()


def find_surface(references: References, dialect: Dialect) -> Surface:
    """Collect the surface of a whole schema."""
    possible = list(_iter_reached(references, dialect, certain=False))
    certain = list(_iter_reached(references, dialect, certain=True))
    declaring = [node["properties"] for node in possible if isinstance(node.get("properties"), dict)]
    known = bool(declaring) and not any(key in node for node in possible for key in _UNFOLLOWED)
    return Surface(
        properties=frozenset(name for each in declaring if isinstance(each, dict) for name in each) if known else None,
        required=frozenset(name for node in certain for name in _list_names(node.get("required"))),
        defaults=MappingProxyType({name: value for node in reversed(certain) for name, value in _iter_defaults(node)}),
        patterns=tuple(name for node in possible for name in _list_names(node.get("patternProperties"))),
        silent=known and not any(key in node for node in possible for key in _OPEN),
    )


def _iter_reached(references: References, dialect: Dialect, *, certain: bool) -> Iterator[Node]:
    """Yield the schema objects that look at the whole value; `certain`: only those that every value must satisfy."""
    waiting, seen = [references.root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        targets = references.find_targets(node)
        if dialect in REF_ALONE_DRAFTS and targets:
            waiting.extend(targets)
            continue
        yield node
        waiting.extend(reversed([*targets, *(_list_all_of(node) if certain else iter_in_place(node))]))


def _list_all_of(node: Node) -> list[Node]:
    parts = node.get("allOf")
    return [part for part in parts if is_node(part)] if isinstance(parts, list) else []


def _list_names(value: JsonValue) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list | dict) else []


def _iter_defaults(node: Node) -> Iterator[tuple[str, JsonValue]]:
    declared = node.get("properties")
    for name, each in declared.items() if isinstance(declared, dict) else ():
        if is_node(each) and "default" in each:
            yield name, each["default"]

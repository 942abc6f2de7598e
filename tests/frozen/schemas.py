"""What a JSON Schema means, whatever its definitions are called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.frozen.golden import canonical, digest

Json = Any

PROSE = {"title", "description", "example", "examples"}
MAPS = {"properties", "patternProperties", "$defs", "definitions"}
LITERAL = {"default", "const", "enum"}
UNORDERED = {"anyOf", "oneOf", "allOf", "required", "enum"}

ROUNDS = 24
"""Definitions are told apart by what they refer to, so many references away."""


class Meaning:
    """Digests of schemas that refer to the same definitions, without their names and without prose."""

    def __init__(self, definitions: dict[str, Json], prefix: str) -> None:
        self._prefix = prefix
        self._colours = dict.fromkeys(definitions, "")
        for _ in range(ROUNDS):
            self._colours = {name: self.digest(schema) for name, schema in definitions.items()}

    def digest(self, schema: Json) -> str:
        """A digest that is the same for schemas that allow the same in the same words."""
        return digest(canonical(self._plain(schema)), 12)

    def _plain(self, node: Json) -> Json:
        if isinstance(node, list):
            return [self._plain(item) for item in node]
        if isinstance(node, str):
            return self._colours[node.removeprefix(self._prefix)] if node.startswith(self._prefix) else node
        if not isinstance(node, dict):
            return node
        return {key: self._member(key, value) for key, value in node.items() if key not in PROSE}

    def _member(self, key: str, value: Json) -> Json:
        if key in MAPS and isinstance(value, dict):
            return {name: self._plain(schema) for name, schema in value.items()}
        made = value if key in LITERAL else self._plain(value)
        return sorted(made, key=canonical) if key in UNORDERED and isinstance(made, list) else made


def unions_in(node: Json) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each member that picks one of several forms, with the names of these."""
    if isinstance(node, dict):
        chosen = node.get("discriminator")
        if isinstance(chosen, dict) and "mapping" in chosen:
            yield chosen["propertyName"], tuple(sorted(chosen["mapping"]))
        for value in node.values():
            yield from unions_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from unions_in(value)

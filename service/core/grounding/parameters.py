"""Read what a tool's schema says about one argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.grounding.fields import says_minor, split_name
from service.core.json.values import equals
from service.core.trace import ToolDef

_MAX_DEPTH = 16


class CallParameter(NamedTuple):
    """A parameter: its name (for array items, that of the array) and its schema, {} if unknown."""

    name: str
    schema: Mapping[str, JsonValue]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the name."""
        return split_name(self.name)

    @property
    def says_minor(self) -> bool:
        """Whether its own description says that it counts cents or the like."""
        text = self.schema.get("description")
        return isinstance(text, str) and says_minor(text)

    def gives(self, value: JsonValue) -> str | None:
        """Return how the schema itself gives a value: `const`, `default` or `enum`; None if it does not."""
        for name in ("const", "default"):
            if name in self.schema and equals(self.schema[name], value):
                return name
        options = self.schema.get("enum")
        return "enum" if isinstance(options, list) and any(equals(option, value) for option in options) else None

    @property
    def is_closed(self) -> bool:
        """Whether the schema lists its values."""
        return isinstance(self.schema.get("enum"), list) or "const" in self.schema


def find_parameter(tool: ToolDef | None, keys: tuple[str, ...]) -> CallParameter:
    """Find the parameter that a path of names leads to. References are not followed: what they hide is unknown.

    >>> tool = ToolDef("t", parameters={"properties": {"a": {"items": {"properties": {"b": {"enum": [1]}}}}}})
    >>> find_parameter(tool, ("a", "b")).gives(1), find_parameter(tool, ("c",)).schema
    ('enum', {})
    """
    here: JsonValue = cast("JsonValue", tool.parameters) if tool is not None else None
    for key in keys[:_MAX_DEPTH]:
        properties = _find_items(here).get("properties")
        here = properties.get(key) if isinstance(properties, dict) else None
    return CallParameter(keys[-1] if keys else "", _find_items(here))


def _find_items(node: JsonValue) -> Mapping[str, JsonValue]:
    for _ in range(4):
        if not isinstance(node, Mapping):
            return {}
        items = node.get("items")
        if not isinstance(items, Mapping):
            return node
        node = cast("JsonValue", items)
    return {}

"""Read what a tool's schema says about one argument."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.evidence.reading.units import MINOR_WORDS
from service.core.evidence.reading.words import split_name, split_tokens, split_words
from service.core.json.values import equals
from service.core.trace import ToolDef

_MAX_DEPTH = 16
_AMOUNT = split_words(
    "amount price cost total budget fee payment balance salary deposit fare tip sum refund charge donation principal "
    "investment loan"
)
_MINOR = MINOR_WORDS | {"minor"}
_MAJOR = split_words("dollars dollar usd eur euros euro gbp pounds")
_SMALLEST = split_words("smallest minor")
SCALES = (
    _MINOR
    | _SMALLEST
    | split_words(
        "micros micro millis milli mills thousands thousand millions million satoshi satoshis wei gwei bps basis points"
    )
)
"""Words that say amounts are not in whole units."""


class CallParameter(NamedTuple):
    """A parameter: its name (for array items, that of the array) and its schema, {} if unknown."""

    name: str
    schema: Mapping[str, JsonValue]
    tool_text: str = ""
    """The description of the tool."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the name."""
        return split_name(self.name)

    @property
    def description(self) -> str:
        """The schema's description, or ""."""
        text = self.schema.get("description")
        return text[:2_000] if isinstance(text, str) else ""

    @property
    def is_amount(self) -> bool:
        """Whether the name says that it is an amount of money."""
        return bool(_AMOUNT & set(self.words))

    @property
    def is_minor(self) -> bool:
        """Whether the name mentions cents, or the description does (`the smallest unit`, but not `in dollars and cents`)."""
        said = set(split_tokens(self.description))
        return bool(_MINOR & set(self.words) or _SMALLEST & said) or (bool(_MINOR & said) and not _MAJOR & said)

    @property
    def is_surely_minor(self) -> bool:
        """Whether it is in cents by name, or by a description that the type does not contradict by allowing fractions."""
        return bool(_MINOR & set(self.words)) or (self.is_minor and self.schema.get("type") not in ("number", "float"))

    @property
    def is_major(self) -> bool:
        """Whether name or description mention whole units of a currency and no smaller ones."""
        said = {*self.words, *split_tokens(self.description)}
        return not self.is_minor and bool(_MAJOR & said) and not _MINOR & said

    @property
    def is_scaled(self) -> bool:
        """Whether the name, its description or that of the tool mentions units other than whole ones."""
        return bool(SCALES & {*self.words, *split_tokens(self.description), *split_tokens(self.tool_text)})

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
        node = _find_items(here)
        properties = node.get("properties")
        here = properties.get(key) if isinstance(properties, dict) else None
    return CallParameter(
        keys[-1] if keys else "", _find_items(here), tool.description[:2_000] if tool is not None else ""
    )


def _find_items(node: JsonValue) -> Mapping[str, JsonValue]:
    for _ in range(4):
        if not isinstance(node, Mapping):
            return {}
        items = node.get("items")
        if not isinstance(items, Mapping):
            return node
        node = cast("JsonValue", items)
    return {}

"""Shapes that several formats share, and the rules for all shapes.

A shape is a TypedDict: pydantic validates with it, OpenAPI shows it, and the format's reader trusts it. Unknown keys
are kept, so a trace goes in as its provider sent it. `Loose` values pass through without being walked or copied: the
size and sanity of a request body are checked once, when it is parsed.
"""

from __future__ import annotations

from pydantic import ConfigDict, JsonValue, SkipValidation, with_config
from typing_extensions import TypedDict

OPEN = ConfigDict(extra="allow", strict=True)
CLOSED = ConfigDict(extra="forbid", strict=True)

Loose = SkipValidation[JsonValue]
"""Any JSON, taken as it is."""


@with_config(OPEN)
class ToolShape(TypedDict, total=False):
    """A tool definition as Chat Completions (`function`), Responses (flat), Anthropic or MCP give it."""

    type: str
    name: str
    description: str | None
    function: Loose
    parameters: Loose
    input_schema: Loose
    inputSchema: Loose
    outputSchema: Loose
    annotations: Loose


@with_config(OPEN)
class ToolListing(TypedDict):
    """What MCP's `tools/list` returns."""

    tools: list[ToolShape]


Tools = SkipValidation[list[ToolShape] | ToolListing | None]
"""The tools on offer. Shown in the schema but checked by `read_tools`, which copies nothing and gives better errors."""


@with_config(OPEN)
class StateShape(TypedDict, total=False):
    """The state of the world around the tools, before and after the run."""

    initial: Loose
    final: Loose

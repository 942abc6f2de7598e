"""Shapes that several formats share, and the rules for all shapes.

A shape is a TypedDict: pydantic validates with it, OpenAPI shows it, and the format's reader trusts it. Unknown keys
are kept, so a trace goes in as its provider sent it. `Loose` values pass through without being walked or copied: the
size and sanity of a request body are checked once, when it is parsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Required, cast

from pydantic import ConfigDict, JsonValue, SkipValidation, with_config
from typing_extensions import TypedDict

from service.errors import InputError
from service.intake.build import Transcript
from service.intake.unread_parts.members import (
    JsonObject,
    clip,
    define_members,
    note_unread_members,
    note_unread_typed_part,
    note_unread_value,
)
from service.intake.unread_parts.suspects import looks_like_call

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


@with_config(OPEN)
class Part(TypedDict, total=False):
    """A part of a message's content.

    Texts and refusals are read; anything else an assistant says, except thinking, is unread.
    """

    type: Required[str]
    text: str | None
    refusal: str | None


Content = str | list[Part] | None
ChatRole = Literal["system", "developer", "user", "assistant", "tool", "function"]


def note_unread_parts(
    transcript: Transcript, content: str | Sequence[Part] | None, path: str, *, role: Literal["user", "assistant"]
) -> None:
    """Report the parts of a message that `join_text` does not read. Thinking is not part of what was said.

    What a user shows besides text is named and leaves nothing open.
    """
    for index, part in enumerate(content if isinstance(content, list) else ()):
        name = part["type"]
        if looks_like_call(cast("JsonObject", part)):
            transcript.note_unread("call", f"{path}/{index}", f"a part of the type {clip(name)}")
        elif name in THINKING:
            note_unread_value(transcript, part, f"{path}/{index}", "a thought")
        elif name in TEXTS or part.get("text") or part.get("refusal"):
            note_unread_members(transcript, part, PART, f"{path}/{index}")
        else:
            note_unread_typed_part(transcript, part, "a part", f"{path}/{index}", idle=role == "user")


def pick_sample(chosen: int | None, count: int, name: str) -> int:
    """Return the index of the reply to read in the member `name`.

    Raises InputError: several replies and none chosen, or an index out of range.
    """
    if chosen is None and count > 1:
        raise InputError.at(f"/{name}", f'{count} replies make {count} traces; choose one with "sample", from 0')
    if chosen is not None and not 0 <= chosen < count:
        raise InputError.at("/sample", f"expected a number from 0 to {count - 1}")
    return chosen or 0


PART = define_members("a part", "type text refusal")
TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})
THINKING = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text"})


def join_text(content: str | Sequence[Part] | None, *, joint: str = "\n") -> str:
    """Join a message's text parts and refusals. Thinking is not part of what was said.

    An assistant's parts are pieces of one text, cut where a citation begins or ends, and are joined with nothing; a
    user's parts are separate texts, one per line.
    """
    if content is None or isinstance(content, str):
        return content or ""
    said = (part for part in content if part["type"] not in THINKING)
    return joint.join(text for part in said if (text := part.get("text") or part.get("refusal")))

"""The shapes that several formats share, and the rules for all shapes.

A shape is a TypedDict: pydantic validates with it, OpenAPI shows it, and the reader of the format trusts it. Unknown keys
are kept, so that a trace goes in as its provider gave it. `Loose` values are passed through unwalked and uncopied: the
size and sanity of a request's body are checked once, where it is parsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Required, cast

from pydantic import ConfigDict, JsonValue, SkipValidation, with_config
from typing_extensions import TypedDict

from service.core.trace import State
from service.errors import InputError
from service.intake.accounting import (
    Given,
    account_members,
    account_part,
    clip,
    looks_like_call,
    lose_calls,
    members_of,
)
from service.intake.build import Transcript

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
"""The tools on offer. Shown in the schema but checked by `read_tools`, which copies nothing and says more when it fails."""


@with_config(OPEN)
class StateShape(TypedDict, total=False):
    """The world around the tools, before and after."""

    initial: Loose
    final: Loose


@with_config(OPEN)
class Part(TypedDict, total=False):
    """A part of a message's content. Texts and refusals are read; what else an assistant says, but thinking, is unread."""

    type: Required[str]
    text: str | None
    refusal: str | None


Content = str | list[Part] | None
ChatRole = Literal["system", "developer", "user", "assistant", "tool", "function"]


def read_state(given: StateShape | None) -> State | None:
    """The state with the names of what was captured: a null that was given is not a part that is absent."""
    if given is None:
        return None
    captured = frozenset(name for name in ("initial", "final") if name in given)
    return State(given.get("initial"), given.get("final"), captured)


def lose_parts(
    transcript: Transcript, content: str | Sequence[Part] | None, path: str, *, role: Literal["user", "assistant"]
) -> None:
    """Tells a transcript of the parts of a message that `text_of` does not read; thinking is none of what was said.

    What a user shows besides text is named and leaves nothing open.
    """
    for index, part in enumerate(content if isinstance(content, list) else ()):
        name = part["type"]
        if looks_like_call(cast("Given", part)):
            transcript.lose("call", f"{path}/{index}", f"a part of the type {clip(name)}")
        elif name in THINKING:
            lose_calls(transcript, part, f"{path}/{index}", "a thought")
        elif name in TEXTS or part.get("text") or part.get("refusal"):
            account_members(transcript, part, PART, f"{path}/{index}")
        else:
            account_part(transcript, part, "a part", f"{path}/{index}", idle=role == "user")


def pick_sample(chosen: int | None, count: int, name: str) -> int:
    """Which of several replies in the member `name` is read. InputError where none is chosen, or one that is not there."""
    if chosen is None and count > 1:
        raise InputError.at(f"/{name}", f'{count} replies are {count} traces; say which is read with "sample", from 0')
    if chosen is not None and not 0 <= chosen < count:
        raise InputError.at("/sample", f"expected a number from 0 to {count - 1}")
    return chosen or 0


PART = members_of("a part", "type text refusal", "annotations logprobs cache_control citations id")
TEXTS = frozenset({"text", "input_text", "output_text", "refusal"})
THINKING = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_text", "summary_text"})


def text_of(content: str | Sequence[Part] | None, *, joint: str = "\n") -> str:
    """The text of a message: its text parts and refusals, joined. What a model thought is none of what it said.

    An assistant's parts are pieces of one text, cut where a citation begins or ends, and are joined with nothing; a
    user's parts are texts of their own, on lines of their own.
    """
    if content is None or isinstance(content, str):
        return content or ""
    said = (part for part in content if part["type"] not in THINKING)
    return joint.join(text for part in said if (text := part.get("text") or part.get("refusal")))

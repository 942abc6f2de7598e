"""Chat Completions: `messages` and `tools` untouched, as sent to and received from the API.

A tool message without `content` says that the call returned but not what: its step has no result. The format has no mark
for a failed tool; an optional `is_error` on a tool message is one. Whether a text beginning with "Error" is an error is not
guessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, Required

from pydantic import with_config
from typing_extensions import TypedDict

from service.core.trace import ToolCall, ToolResult, Trace
from service.errors import InputError
from service.intake.build import Transcript, custom_call, result_content, tool_call
from service.intake.format import Format, Given
from service.intake.shapes import (
    OPEN,
    Content,
    Loose,
    StateShape,
    Tools,
    kind_of,
    list_unread_parts,
    read_state,
    text_of,
)
from service.intake.tools import read_tools


@with_config(OPEN)
class FunctionShape(TypedDict):
    """A function's name and its arguments: a JSON string, which may be invalid, or an object."""

    name: str
    arguments: NotRequired[Loose]


@with_config(OPEN)
class CustomShape(TypedDict):
    """A custom tool's name and the text it was given."""

    name: str
    input: NotRequired[Loose]


@with_config(OPEN)
class CallShape(TypedDict, total=False):
    """One of an assistant message's `tool_calls`."""

    id: str | None
    type: str | None
    function: FunctionShape
    custom: CustomShape


@with_config(OPEN)
class ChatMessage(TypedDict, total=False):
    """A message of any role."""

    role: Required[Literal["system", "developer", "user", "assistant", "tool", "function"]]
    content: Content
    tool_calls: list[CallShape] | None
    function_call: FunctionShape | None
    refusal: str | None
    tool_call_id: str | None
    is_error: bool | None
    audio: Loose


@with_config(OPEN)
class OpenAITrace(TypedDict):
    """A conversation in the form of Chat Completions."""

    format: Literal["openai"]
    id: NotRequired[str | None]
    messages: list[ChatMessage]
    tools: NotRequired[Tools]
    state: NotRequired[StateShape | None]


def read(record: OpenAITrace) -> Trace:
    """The trace of a validated record. Raises InputError: a tool call that calls nothing, unusable tools."""
    transcript = Transcript()
    read_messages(transcript, record["messages"])
    offered = "functions" if "tools" not in record and "functions" in record else "tools"  # the legacy name
    return transcript.trace(
        record,
        trace_id=record.get("id"),
        tools=read_tools(record.get(offered), path=f"/{offered}"),
        state=read_state(record.get("state")),
    )


def read_messages(
    transcript: Transcript, messages: Sequence[ChatMessage], *, path: str = "/messages", error_prefix: str | None = None
) -> None:
    """Write Chat Completions messages down. With `error_prefix`, a result whose text begins so is an error."""
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "assistant":
            _assistant(transcript, message, path, index)
        elif role in ("tool", "function"):
            returned = _result(message, error_prefix)
            transcript.result(message.get("tool_call_id"), returned, path=f"{path}/{index}")
        else:
            transcript.say("user" if role == "user" else "system", text_of(message.get("content")))


def _assistant(transcript: Transcript, message: ChatMessage, path: str, index: int) -> None:
    content = message.get("content")
    transcript.say("assistant", text_of(content, joint="") or message.get("refusal") or "")
    for place, name in list_unread_parts(content):
        transcript.lose(kind_of(name), f"{path}/{index}/content/{place}", f"a part of the type {name}")
    if not content and message.get("audio"):
        transcript.lose("text", f"{path}/{index}/audio", "what was said as audio")
    for place, given in enumerate(message.get("tool_calls") or ()):
        call = _call(given)
        if call is None:
            raise InputError.at(f"{path}/{index}/tool_calls/{place}", f"a tool call has {_CALL}")
        transcript.call(call)
    legacy = message.get("function_call")
    if legacy is not None:
        transcript.call(tool_call(None, legacy["name"], legacy.get("arguments")))


_CALL = '"function": {"name", "arguments"} or "custom": {"name", "input"}'


def _call(given: CallShape) -> ToolCall | None:
    function = given.get("function")
    if function is not None:
        return tool_call(given.get("id"), function["name"], function.get("arguments"))
    custom = given.get("custom")
    return custom_call(given.get("id"), custom["name"], custom.get("input")) if custom is not None else None


def _result(message: ChatMessage, error_prefix: str | None) -> ToolResult | None:
    if "content" not in message:
        return None
    content = result_content(message["content"])  # pyright: ignore[reportArgumentType] (parts are JSON)
    marked = error_prefix is not None and isinstance(content, str) and content.startswith(error_prefix)
    return ToolResult(content, marked or message.get("is_error") is True)


def _recognise(record: Given) -> bool:
    return isinstance(record.get("messages"), list)


FORMAT = Format(OpenAITrace, read, _recognise, rank=60, place=1)

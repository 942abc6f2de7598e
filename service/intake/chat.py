"""Chat Completions messages as sent to and received from the API; several formats contain them.

A tool message without `content` says that the call returned but not what, so its step has no result. The API has no
marker for a failed tool; the optional `is_error` on a tool message serves as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, Required, cast

from pydantic import with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, find_text
from service.core.trace import ToolCall, ToolResult
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_custom_call, build_tool_call, read_result_content
from service.intake.shapes import OPEN, ChatRole, Content, Loose, join_text, note_unread_parts
from service.intake.unread_parts.members import define_members, note_unread_members


@with_config(OPEN)
class FunctionShape(TypedDict):
    """A function's name and its arguments: a JSON string, which may be invalid, or an object."""

    name: str
    arguments: NotRequired[Loose]


@with_config(OPEN)
class CustomShape(TypedDict):
    """A custom tool's name and the text passed to it."""

    name: str
    input: NotRequired[Loose]


@with_config(OPEN)
class CallShape(TypedDict, total=False):
    """One entry of an assistant message's `tool_calls`."""

    id: str | None
    type: str | None
    function: FunctionShape
    custom: CustomShape


@with_config(OPEN)
class ChatMessage(TypedDict, total=False):
    """A message of any role."""

    role: Required[ChatRole]
    content: Content
    tool_calls: list[CallShape] | None
    function_call: FunctionShape | None
    refusal: str | None
    tool_call_id: str | None
    is_error: bool | None
    audio: Loose
    provider_specific_fields: Loose


_COMMON = "id name object type status created_at timestamp model weight cache_control prefix"
_THOUGHTS = "reasoning reasoning_content reasoning_details thinking thinking_blocks"
ASSISTANT = define_members(
    "an assistant message",
    "role content refusal tool_calls function_call audio",
    "reply",
)
CALL = define_members("a tool call", "id type function custom")
RESULT = define_members("a tool message", "role content tool_call_id is_error name", "result")
MESSAGE = define_members("a message", "role content")


def read_messages(
    transcript: Transcript, messages: Sequence[ChatMessage], *, path: str = "/messages", error_prefix: str | None = None
) -> None:
    """Add Chat Completions messages to the transcript.

    With `error_prefix`, a result whose text starts with it is an error.

    Raises InputError: a tool call that names neither a function nor a custom tool.
    """
    for index, message in enumerate(messages):
        place = f"{path}/{index}"
        if message["role"] == "assistant":
            read_reply(transcript, message, place)
        elif message["role"] in ("tool", "function"):
            _read_tool_message(transcript, message, place, error_prefix)
            note_unread_members(transcript, message, RESULT, place, silent=not message.get("content"))
        else:
            _read_input_message(transcript, message, place)


def _read_tool_message(transcript: Transcript, message: ChatMessage, path: str, error_prefix: str | None) -> None:
    tool = find_text(cast("JsonObject", message), "name")
    transcript.add_result(message.get("tool_call_id"), _read_result(message, error_prefix), path=path, tool=tool)


def _read_input_message(transcript: Transcript, message: ChatMessage, path: str) -> None:
    content = message.get("content")
    transcript.say("user" if message["role"] == "user" else "system", join_text(content))
    if isinstance(content, list):
        note_unread_parts(transcript, content, f"{path}/content", role="user")
    note_unread_members(transcript, message, MESSAGE, path)


def read_reply(transcript: Transcript, message: ChatMessage, path: str) -> None:
    """Add an assistant message with its calls. Raises InputError as `read_messages` does."""
    content = message.get("content")
    refusal = message.get("refusal") or ("provider_specific_fields" in message and _find_refusal(message)) or ""
    text = join_text(content, joint="")
    text = f"{text}\n{refusal}" if text and refusal else text or refusal
    transcript.say("assistant", text)
    if isinstance(content, list):
        note_unread_parts(transcript, content, f"{path}/content", role="assistant")
    if message.get("audio") and not (text and _spells(message, text)):
        transcript.note_unread("text", f"{path}/audio", "what was said as audio")
    calls = message.get("tool_calls") or ()
    for place, raw in enumerate(calls):
        transcript.call(_read_call(raw, f"{path}/tool_calls/{place}"))
        note_unread_members(transcript, raw, CALL, f"{path}/tool_calls/{place}")
    legacy = message.get("function_call")
    if legacy is not None and not _repeats(legacy, calls):
        transcript.call(build_tool_call(None, legacy["name"], legacy.get("arguments")))
    if "finish_reason" in message:
        transcript.end_reply(cast("JsonObject", message), path)
    silent = not (text or calls or legacy or message.get("audio"))
    note_unread_members(transcript, message, ASSISTANT, path, silent=silent)


def _spells(message: ChatMessage, text: str) -> bool:
    """Whether this text may be the transcript of the message's audio, as far as the message tells."""
    audio = message.get("audio")
    return not isinstance(audio, dict) or audio.get("transcript") in (None, "", text)


def _repeats(legacy: FunctionShape, calls: Sequence[CallShape]) -> bool:
    """Whether a call in the older member is also one of `tool_calls`: some servers write both."""
    functions = [raw.get("function") for raw in calls]
    return any(
        one and (one["name"], one.get("arguments")) == (legacy["name"], legacy.get("arguments")) for one in functions
    )


def _find_refusal(message: ChatMessage) -> str:
    """Return a refusal from where LiteLLM puts it."""
    fields = message.get("provider_specific_fields")
    refusal = fields.get("refusal") if isinstance(fields, dict) else None
    return refusal if isinstance(refusal, str) else ""


def _read_call(raw: CallShape, path: str) -> ToolCall:
    function = raw.get("function")
    if function is not None:
        return build_tool_call(raw.get("id"), function["name"], function.get("arguments"))
    custom = raw.get("custom")
    if custom is not None:
        return build_custom_call(raw.get("id"), custom["name"], custom.get("input"))
    raise InputError.at(path, 'a tool call needs "function": {"name", "arguments"} or "custom": {"name", "input"}')


def _read_result(message: ChatMessage, error_prefix: str | None) -> ToolResult | None:
    if "content" not in message:
        return None
    content = read_result_content(message["content"])  # pyright: ignore[reportArgumentType] (parts are JSON)
    marked = error_prefix is not None and isinstance(content, str) and content.startswith(error_prefix)
    return ToolResult(content, marked or message.get("is_error") is True)

"""The Responses API: `input` and `output` items, or a whole Response object as the API returned it.

Adjacent calls, and calls right after an assistant's text, were made by one message, as in Chat Completions. Reasoning
stays in `raw`; items of unknown types are reported as unread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NotRequired, cast

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, find_object, find_text
from service.core.trace import ToolResult, Trace
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_custom_call, build_tool_call, read_result_content
from service.intake.format import Format
from service.intake.hosted_tools import (
    HOSTED_TOOLS,
    OUTPUTS,
    list_hosted,
    read_hosted,
    read_mcp_call,
    read_mcp_tools,
    read_output,
)
from service.intake.shapes import OPEN, Content, Loose, StateShape, Tools, join_text, note_unread_parts
from service.intake.tools import read_tools
from service.intake.unread_parts.endings import Ending
from service.intake.unread_parts.members import define_members, note_unread_members, note_unread_typed_part


@with_config(OPEN)
class Item(TypedDict, total=False):
    """A message (`role`, `content`), a `function_call` (`call_id`, `name`, `arguments`), its `function_call_output`, or other."""

    type: str | None
    id: str | None
    approval_request_id: str | None
    role: Literal["system", "developer", "user", "assistant"]
    content: Content
    call_id: str | None
    name: str | None
    arguments: Loose
    input: Loose
    output: Loose


@with_config(OPEN)
class ResponsesTrace(TypedDict):
    """A conversation in the form of the Responses API: any of `input`, `output` and `items`, in this order."""

    format: Literal["openai_responses"]
    id: NotRequired[str | None]
    instructions: NotRequired[str | list[Item] | None]
    input: NotRequired[str | list[Item] | None]
    output: NotRequired[list[Item] | None]
    items: NotRequired[list[Item] | None]
    tools: NotRequired[Tools]
    state: NotRequired[StateShape | None]


RECORD = define_members(
    "the trace",
    "format id instructions input output items tools state",
)


def read(record: ResponsesTrace) -> Trace:
    """Read a validated record. Raises InputError: no items at all, an item without its role or name, unusable tools."""
    if not any(key in record for key in ("input", "output", "items")):
        raise InputError.at("", "expected at least one of input, output and items")
    transcript = Transcript()
    tools = read_tools(record.get("tools"))
    hosted = list_hosted(record.get("tools"))
    _read_items(transcript, _list_items(record.get("instructions"), "system"), "/instructions", hosted)
    _read_items(transcript, _list_items(record.get("input"), "user"), "/input", hosted)
    _read_items(transcript, record.get("output") or (), "/output", hosted)
    _read_items(transcript, record.get("items") or (), "/items", hosted)
    _note_ending(transcript, cast("dict[str, JsonValue]", record))
    note_unread_members(transcript, record, RECORD, "")
    return transcript.build_trace(record, tools=tools)


def _note_ending(transcript: Transcript, raw: Mapping[str, JsonValue]) -> None:
    """Report a response that failed or that its provider withheld."""
    if raw.get("error"):
        transcript.end_reply({"error": raw["error"]}, "")
    elif raw.get("status") in ("failed", "cancelled"):
        transcript.end_with(Ending(str(raw["status"]), "/status"))
    else:
        for name, reason in (
            ("/incomplete_details/reason", find_text(find_object(raw, "incomplete_details"), "reason")),
            ("/status", find_text(raw, "status")),
        ):
            if reason:
                transcript.end_with(Ending(reason, name))
                return


def _list_items(raw: str | Sequence[Item] | None, role: Literal["system", "user"]) -> Sequence[Item]:
    """Return the items; a bare text stands for one message."""
    if isinstance(raw, str):
        return (Item(role=role, content=raw),)
    return raw or ()


def _read_items(transcript: Transcript, items: Sequence[Item], path: str, hosted: Sequence[str]) -> None:
    for index, item in enumerate(items):
        _read_item(transcript, item, f"{path}/{index}", hosted)


def _read_item(transcript: Transcript, item: Item, path: str, hosted: Sequence[str]) -> None:
    kind = item.get("type") or "message"
    read_kind = READERS.get(kind)
    if read_kind is not None:
        read_kind(transcript, item, path)
    elif kind in HOSTED_TOOLS:
        read_hosted(transcript, item, hosted)
    elif kind not in IDLE:
        note_unread_typed_part(transcript, {**item, "type": kind}, "an item", path)
        return
    if kind != "message":
        note_unread_members(transcript, item, ITEM, path)


IDLE = frozenset({"reasoning", "mcp_approval_response", "compaction"})
"""Items that carry nothing that is scored."""

ITEM = define_members(
    "an item",
    "type role content call_id name arguments input output id status action actions queries results code outputs operation "
    "result tools error server_label approval_request_id",
)
MESSAGE = define_members("a message", "type role content")


def _read_message(transcript: Transcript, item: Item, path: str) -> None:
    role = item.get("role")
    if role is None:
        raise InputError.at(path, "a message needs a role; other items name their type")
    content, replied = item.get("content"), role == "assistant"
    text = join_text(content, joint="" if replied else "\n")
    transcript.say("system" if role == "developer" else role, text)
    note_unread_parts(transcript, content, f"{path}/content", role="assistant" if replied else "user")
    note_unread_members(transcript, item, MESSAGE, path, silent=replied and not content)


def _read_call(transcript: Transcript, item: Item, path: str) -> None:
    transcript.call(build_tool_call(item.get("call_id"), _read_name(item, path), item.get("arguments")))


def _read_custom_call(transcript: Transcript, item: Item, path: str) -> None:
    transcript.call(build_custom_call(item.get("call_id"), _read_name(item, path), item.get("input")))


def _read_call_output(transcript: Transcript, item: Item, path: str) -> None:
    result = ToolResult(read_result_content(item["output"])) if "output" in item else None
    transcript.add_result(item.get("call_id"), result, path=path)


def _read_name(item: Item, path: str) -> str:
    name = item.get("name")
    if name is None:
        raise InputError.at(path, "a call needs a name")
    return name


READERS: Mapping[str, Callable[[Transcript, Item, str], None]] = {
    "message": _read_message,
    "function_call": _read_call,
    "custom_tool_call": _read_custom_call,
    "function_call_output": _read_call_output,
    "custom_tool_call_output": _read_call_output,
    "mcp_call": read_mcp_call,
    "mcp_approval_request": read_mcp_call,
    "mcp_list_tools": read_mcp_tools,
    **dict.fromkeys(OUTPUTS, read_output),
}
"""Readers of items that need no further context, by type."""


def _recognise(record: JsonObject) -> bool:
    return any(key in record for key in ("output", "items", "input"))


FORMAT = Format(ResponsesTrace, read, _recognise, rank=70, hint="input, output or items", place=2)

"""The Responses API: `input` and `output` items, or a whole Response object as the API returned it.

Calls that stand together, and those right after a text of the assistant, were made by one message, as in Chat Completions.
Reasoning stays in `raw`. Hosted tool calls (`web_search_call`, `mcp_call`, ...) and other items are told as unread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from service.core.trace import ToolResult, Trace
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
class Item(TypedDict, total=False):
    """A message (`role`, `content`), a `function_call` (`call_id`, `name`, `arguments`), its `function_call_output`, or other."""

    type: str | None
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


def read(record: ResponsesTrace) -> Trace:
    """The trace of a validated record. Raises InputError: no items at all, an item without its role or name, unusable tools."""
    if not any(key in record for key in ("input", "output", "items")):
        raise InputError.at("", "expected at least one of input, output and items")
    transcript = Transcript()
    _read_items(transcript, _list_items(record.get("instructions"), "system"), "/instructions")
    _read_items(transcript, _list_items(record.get("input"), "user"), "/input")
    _read_items(transcript, record.get("output") or (), "/output")
    _read_items(transcript, record.get("items") or (), "/items")
    return transcript.trace(
        record,
        trace_id=record.get("id"),
        tools=read_tools(record.get("tools")),
        state=read_state(record.get("state")),
    )


def _list_items(given: str | Sequence[Item] | None, role: Literal["system", "user"]) -> Sequence[Item]:
    """A bare text stands for one message."""
    if isinstance(given, str):
        return (Item(role=role, content=given),)
    return given or ()


def _read_items(transcript: Transcript, items: Sequence[Item], path: str) -> None:
    for index, item in enumerate(items):
        kind = item.get("type") or "message"
        if kind == "message":
            _message(transcript, item, f"{path}/{index}")
        elif kind == "function_call":
            name = _name(item, f"{path}/{index}")
            transcript.call(tool_call(item.get("call_id"), name, item.get("arguments")))
        elif kind == "custom_tool_call":
            name = _name(item, f"{path}/{index}")
            transcript.call(custom_call(item.get("call_id"), name, item.get("input")))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            transcript.result(item.get("call_id"), _result(item), path=f"{path}/{index}")
        elif kind not in NOTHING and not kind.endswith("_output"):
            transcript.lose("call", f"{path}/{index}", f"an item of the type {kind}")


NOTHING = frozenset({"reasoning", "mcp_list_tools", "mcp_approval_response", "item_reference", "compaction"})
"""Items that carry nothing that is scored. Outputs of hosted tools are lost with their calls."""


def _message(transcript: Transcript, item: Item, path: str) -> None:
    role = item.get("role")
    if role is None:
        raise InputError.at(path, "a message has a role; other items name their type")
    content = item.get("content")
    transcript.say(
        "system" if role == "developer" else role, text_of(content, joint="" if role == "assistant" else "\n")
    )
    for place, name in list_unread_parts(content) if role == "assistant" else ():
        transcript.lose(kind_of(name), f"{path}/content/{place}", f"a part of the type {name}")


def _name(item: Item, path: str) -> str:
    name = item.get("name")
    if name is None:
        raise InputError.at(path, "a call has a name")
    return name


def _result(item: Item) -> ToolResult | None:
    return ToolResult(result_content(item["output"])) if "output" in item else None


def _recognise(record: Given) -> bool:
    return any(key in record for key in ("output", "items", "input"))


FORMAT = Format(ResponsesTrace, read, _recognise, rank=70, place=2)

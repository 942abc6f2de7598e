"""Anthropic's Messages API: `system`, `messages` of content blocks, and `tools`, untouched.

A user message of nothing but `tool_result` blocks is no turn. Tools that the provider runs (`server_tool_use`) are
steps with their results in the same message; whatever the assistant says after one is a new message. Thinking stays in
`raw`. Calls to MCP servers, whose tools the request does not list, are steps too; blocks of other types are reported
as unread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal, NotRequired, Required, cast

from pydantic import with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, list_objects, read_type
from service.core.trace import ToolCall, ToolDef, ToolResult, Trace
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_tool_call, read_result_content
from service.intake.format import Format
from service.intake.shapes import OPEN, THINKING, Loose, Part, StateShape, Tools, join_text
from service.intake.tools import read_tools
from service.intake.unread_parts.members import clip, define_members, note_unread_members, note_unread_typed_part


@with_config(OPEN)
class Block(TypedDict, total=False):
    """A content block: `text`, `tool_use` (`id`, `name`, `input`), `tool_result` (`tool_use_id`, `content`), or other."""

    type: Required[str]
    text: str | None
    id: str | None
    name: str | None
    input: Loose
    tool_use_id: str | None
    content: Loose
    is_error: bool | None


@with_config(OPEN)
class AnthropicMessage(TypedDict):
    """A message of the user or the assistant."""

    role: Literal["system", "user", "assistant"]
    content: str | list[Block]


@with_config(OPEN)
class AnthropicTrace(TypedDict):
    """A conversation in the form of Anthropic's Messages: `messages`, then the reply's `content`."""

    format: Literal["anthropic"]
    id: NotRequired[str | None]
    system: NotRequired[str | list[Block] | None]
    messages: NotRequired[list[AnthropicMessage]]
    content: NotRequired[list[Block] | None]
    tools: NotRequired[Tools]
    state: NotRequired[StateShape | None]


BLOCK = define_members(
    "a block",
    "type text id name input tool_use_id content is_error",
)
RESULT_BLOCK = replace(BLOCK, about="result")
MESSAGE = define_members("a message", "role content")
RECORD = define_members(
    "the trace",
    "format id system messages content tools state",
)


def read(record: AnthropicTrace) -> Trace:
    """Read a validated record. Raises InputError: no messages and no reply, a call without a name, unusable tools."""
    if "messages" not in record and "content" not in record:
        raise InputError.at("", "expected messages, the content of a reply, or both")
    transcript = Transcript()
    system = record.get("system")
    if system is not None:
        transcript.say("system", _read_text(system))
        _note_blocks(transcript, system, "/system")
    for index, message in enumerate(record.get("messages", ())):
        _read_message(transcript, message, f"/messages/{index}/content")
        _note_blocks(transcript, message["content"], f"/messages/{index}/content")
        note_unread_members(transcript, message, MESSAGE, f"/messages/{index}")
        if message["role"] == "assistant":
            transcript.end_reply(cast("JsonObject", message), f"/messages/{index}")
    reply = record.get("content")
    if reply:
        _read_message(transcript, {"role": "assistant", "content": reply}, "/content")
        _note_blocks(transcript, reply, "/content")
    if "content" in record or not transcript.has_replied():
        transcript.end_reply(cast("JsonObject", record), "")
    note_unread_members(transcript, record, RECORD, "")
    return transcript.build_trace(record, tools=read_tools(record.get("tools")))


def _note_blocks(transcript: Transcript, content: str | Sequence[Block], path: str) -> None:
    for index, block in enumerate(() if isinstance(content, str) else content):
        hollow = _is_result(block) and not block.get("content")
        note_unread_members(transcript, block, RESULT_BLOCK if hollow else BLOCK, f"{path}/{index}", silent=hollow)


def _read_message(transcript: Transcript, message: AnthropicMessage, path: str) -> None:
    role, content = message["role"], message["content"]
    if isinstance(content, str):
        transcript.say(role, content)
    elif not content:
        transcript.say(role, "")
    elif role == "assistant":
        _read_assistant(transcript, content, path)
    else:
        _read_user(transcript, role, content, path)


def _read_user(transcript: Transcript, role: Literal["system", "user"], blocks: Sequence[Block], path: str) -> None:
    for index, block in enumerate(blocks):
        if _is_result(block):
            transcript.add_result(block.get("tool_use_id"), _read_result(block), path=f"{path}/{index}")
        elif block["type"] != "text":
            note_unread_typed_part(transcript, block, "a block", f"{path}/{index}", idle=True)
    content = [block for block in blocks if not _is_result(block)]
    if content:
        transcript.say(role, _read_text(content))


def _read_assistant(transcript: Transcript, blocks: Sequence[Block], path: str) -> None:
    """Read an assistant's blocks. Results of server tools cut the message into runs, each of them a message."""
    for are_results, run in groupby(enumerate(blocks), key=lambda place: _is_result(place[1])):
        if are_results:
            for index, block in run:
                transcript.add_result(block.get("tool_use_id"), _read_result(block), path=f"{path}/{index}")
        else:
            _speak(transcript, list(run), path)


def _speak(transcript: Transcript, run: Sequence[tuple[int, Block]], path: str) -> None:
    calls = [_read_call(block, f"{path}/{index}") for index, block in run if _is_call(block)]
    text = _read_text([block for _, block in run], joint="")
    # Thinking after a result makes no message; a message of thinking alone is empty.
    if text or calls or run[0][0] == 0:
        transcript.say("assistant", text)
    for call in calls:
        transcript.call(call)
    for index, block in run:
        name = block["type"]
        if name in RUN_BY_PROVIDER:
            transcript.offer(ToolDef(block.get("name") or ""))
        if name != "text" and name not in THINKING and not _is_call(block):
            _note_unread_block(transcript, block, f"{path}/{index}")


def _note_unread_block(transcript: Transcript, block: Block, path: str) -> None:
    """Report a block as unread. One with a name and an input is a call, whatever its type says."""
    if block.get("name") and "input" in block:
        transcript.note_unread("call", path, f"a block of the type {clip(block['type'])}")
    else:
        note_unread_typed_part(transcript, block, "a block", path)


RUN_BY_PROVIDER = frozenset({"server_tool_use", "mcp_tool_use"})
"""Calls of tools that the provider has run, which are therefore on offer even if `tools` does not list them."""


def _is_call(block: Block) -> bool:
    return block["type"] == "tool_use" or block["type"] in RUN_BY_PROVIDER


def _is_result(block: Block) -> bool:
    """Whether a block is a result. Those of tools that the provider ran have types like `web_search_tool_result`."""
    return block["type"].endswith("tool_result")


def _read_call(block: Block, path: str) -> ToolCall:
    name = block.get("name")
    if name is None:
        raise InputError.at(path, f"a {block['type']} block needs a name")
    return build_tool_call(block.get("id"), name, block.get("input"))


def _read_result(block: Block) -> ToolResult:
    """Read a result. A block without content means that the tool returned nothing."""
    content = block.get("content")
    failed = read_type(content).endswith("_tool_result_error")
    return ToolResult(read_result_content(content), failed or block.get("is_error") is True)


def _read_text(content: str | Iterable[Block], *, joint: str = "\n") -> str:
    if isinstance(content, str):
        return content
    return join_text(cast("list[Part]", [block for block in content if block["type"] == "text"]), joint=joint)


_OWN_TYPES = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use"})
"""Types of blocks that no other format has."""


def _recognise(record: JsonObject) -> bool:
    if record.get("type") == "message" and isinstance(record.get("content"), list):
        return True
    if not isinstance(record.get("messages"), list):
        return False
    if "system" in record or any("input_schema" in tool for tool in list_objects(record.get("tools"))):
        return True
    blocks = (block for message in list_objects(record["messages"]) for block in list_objects(message.get("content")))
    return any(read_type(block) in _OWN_TYPES for block in blocks)


FORMAT = Format(
    AnthropicTrace,
    read,
    _recognise,
    rank=50,
    hint="messages beside system, input_schema of tools or tool_use blocks, or the content of a reply",
    place=3,
)

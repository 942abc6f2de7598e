"""ShareGPT conversations (`from`, `value`), with calls as fine-tuning data sets write them.

LLaMA-Factory gives calls a turn of their own (`function_call`, JSON of one call or a list) and their results another
(`observation`). Hermes writes calls into the text between `<tool_call>` tags, results between `<tool_response>` tags.
Results name no call and belong to the preceding calls in order; if one is a list as long as several parallel calls,
each call takes its item. Tools stand in `tools`, as JSON or JSON text, or between `<tools>` tags in a system turn.
Text between `<think>` tags is not part of what was said.
"""

from __future__ import annotations

from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.members import as_text, find_object, find_text, list_objects
from service.core.json.parsing import UnreadableError, parse
from service.core.trace import ToolCall, ToolResult
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_tool_call, read_result_content
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.texts import parse_text, split_tags, unfence
from service.intake.tools import read_tools
from service.intake.unread_parts.suspects import find_calls

ROLES = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "model", "chatgpt", "bot"), "assistant"),
    **dict.fromkeys(("function_call", "tool_call"), "call"),
    **dict.fromkeys(("observation", "tool", "function", "tool_response", "function_response"), "result"),
    "system": "system",
}
TAGS = ("tool_calls?", "function_?calls?", "think")


def _read(record: Cursor) -> Tools:
    system = record.text("system")
    if system:
        record.out.say("system", system)
    tools = _list_tools(record, system)
    turns = record.list_nodes("conversations")
    roles = [ROLES.get((as_text(turn.peek("from")) or as_text(turn.peek("role")) or "").lower()) for turn in turns]
    call_count = 0
    for index, turn in enumerate(turns):
        name = "value" if "value" in turn else "content"
        before, after = roles[index - 1] if index else None, roles[index + 1] if index + 1 < len(roles) else None
        value, path = turn.take(name), f"{turn.path}/{name}"
        turn.take("from", "role")
        if roles[index] == "result":
            _read_results(record.out, value, path, call_count, alone="result" not in (before, after))
        elif roles[index] == "call" == before:  # parallel to the calls of the turn before
            call_count += _read_calls(record.out, value, path)
        else:
            call_count = _read_turn(turn, value, path, roles[index])
        turn.close()
    return tools


def _read_turn(turn: Cursor, value: JsonValue, path: str, role: str | None) -> int:
    """Add a turn to the transcript; return how many calls it made."""
    text = value if isinstance(value, str) else ""
    if role == "assistant":
        return _read_reply(turn.out, text, path)
    if role == "call":
        turn.out.say("assistant", "")
        return _read_calls(turn.out, value, path)
    if role is None:
        inner = Cursor(_parse(text) or turn.raw, turn.out, turn.path)
        inner.leave("a turn of an unknown role", holds="text")
    else:
        turn.out.say("user" if role == "user" else "system", text)
    return 0


def _read_reply(transcript: Transcript, text: str, path: str) -> int:
    pieces = list(split_tags(text, TAGS))
    said = "".join(piece.text for piece in pieces if piece.tag is None).strip()
    transcript.say("assistant", said)
    if any(find_calls(parse_text(unfence(said)), path)):
        transcript.note_unread("call", path, "a text that is JSON of calls")
    for piece in pieces:
        if piece.tag == "think" and not piece.closed:
            transcript.note_unread("text", path, "what follows a thought that does not end")
            for inner in split_tags(piece.text, TAGS):
                if inner.tag not in (None, "think"):
                    transcript.note_unread("call", path, "a call in a thought that does not end")
    return sum([_read_calls(transcript, piece.text, path) for piece in pieces if piece.tag not in (None, "think")])


def _read_calls(transcript: Transcript, value: JsonValue, path: str) -> int:
    """Add the calls in JSON, or JSON text; return how many there are. What is not a call is reported as unread."""
    raw = _parse(value)
    calls = [_read_call(item) for item in (raw if isinstance(raw, list) else [raw])]
    for call in calls:
        if call is None:
            transcript.note_unread("call", path, "a call that is no JSON object with a name")
        else:
            transcript.call(call, parallel=True)
    return len(calls)


def _parse(value: JsonValue) -> JsonValue:
    try:
        return parse(value.strip()) if isinstance(value, str) else value
    except UnreadableError:
        return None


def _read_call(item: JsonValue) -> ToolCall | None:
    if not isinstance(item, dict):
        return None
    function = find_object(item, "function") or item
    name = find_text(function, "name")
    key = next((key for key in ("arguments", "parameters", "args") if key in function), "")
    return build_tool_call(find_text(item, "id"), name, function.get(key)) if name else None


class Observation(NamedTuple):
    """What a tool returned, with its call's id and the tool's name if stated."""

    content: JsonValue
    call_id: str | None = None
    tool: str | None = None


def _read_results(transcript: Transcript, value: JsonValue, path: str, call_count: int, *, alone: bool) -> None:
    """Read a turn of results.

    `call_count`: calls made before it; `alone`: whether no other turn holds results of these calls.
    """
    results = _list_results(transcript, value, call_count if alone else 1)
    if alone and len(results) == 1 < call_count and results[0].call_id is None is results[0].tool:
        transcript.note_unread("result", path, "one result of several calls")
        return
    for result in results:
        transcript.add_result(result.call_id, ToolResult(result.content), path=path, tool=result.tool)


def _list_results(transcript: Transcript, value: JsonValue, call_count: int) -> list[Observation]:
    text = value if isinstance(value, str) else ""
    pieces = [piece.text for piece in split_tags(text, ("tool_response",)) if piece.tag]
    if pieces:
        return [_observe(read_result_content(piece.strip())) for piece in pieces]
    content = read_result_content(value)
    raw = content if isinstance(content, list) and 1 < call_count == len(content) else [content]
    named = [_observe(item) for item in raw]
    # Without tags, an object with a name and a content is a wrapping only if the name is that of a tool that was called.
    return [
        one if one.tool is None or one.tool in transcript.called_tools else Observation(item)
        for one, item in zip(named, raw, strict=True)
    ]


def _observe(content: JsonValue) -> Observation:
    """Unwrap a result that Hermes labels with its tool's name."""
    if isinstance(content, dict) and {"name", "content"} <= content.keys() <= {"name", "content", "tool_call_id"}:
        return Observation(content["content"], find_text(content, "tool_call_id"), find_text(content, "name"))
    return Observation(content)


def _list_tools(record: Cursor, system: str) -> Tools:
    raw = record.take("tools")
    if raw is None or raw == "":
        return _find_tools_in_text(record, system)
    parsed = _parse(raw)
    if parsed is None:
        raise InputError.at("/tools", "expected a list of tools, or one as JSON text")
    return read_tools(parsed)


def _find_tools_in_text(record: Cursor, system: str) -> Tools:
    """Return the tools between `<tools>` tags, a list or one per line. None if unreadable: a gap would mislead."""
    turns = list_objects(record.peek("conversations"))
    for text in (system, *[turn.get("value") for turn in turns if turn.get("from") == "system"]):
        for piece in split_tags(text, ("tools",)) if isinstance(text, str) else ():
            whole = _parse(piece.text) if piece.tag else []
            lines = (
                whole if isinstance(whole, list) else [_parse(line) for line in piece.text.splitlines() if line.strip()]
            )
            if lines:
                try:
                    return read_tools(lines)
                except InputError:
                    return None
    return None


FORMATS = (
    Format(
        name="sharegpt",
        read=_read,
        recognise=lambda record: any(
            "from" in turn or "role" in turn for turn in list_objects(record.get("conversations"))
        ),
        score=74,
        summary="A line of a ShareGPT data set: `conversations` with calls.",
        hint="conversations",
    ),
)

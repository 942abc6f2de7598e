"""Sessions of agents that write code: the lines of a file, in lines."""

from __future__ import annotations

from service.core.json.members import JsonObject, as_text, find_object, list_objects
from service.core.trace import ToolResult
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import find_speaker, read_message, read_messages
from service.intake.parts import add_part
from service.intake.texts import parse_text
from service.intake.unread_parts.endings import Ending

_ASIDE = frozenset(
    [
        *("summary", "progress", "attachment", "file-history-snapshot", "file-history-delta", "queue-operation"),
        *("mode", "permission-mode", "last-prompt", "ai-title", "custom-title", "agent-name", "cost-state", "system"),
    ]
)
"""Lines that are none of the conversation."""


def _name_claude_code_session(line: JsonObject) -> str | None:
    """Return the session that a line of a file belongs to, "" if that of the lines around it."""
    named = as_text(line.get("sessionId")) if "type" in line and "messages" not in line else None
    return "" if named is None and "leafUuid" in line else named


@Format(score=95, hint="lines with a sessionId and a type", session=_name_claude_code_session)
def claude_code(record: Cursor) -> Tools:
    """A session of Claude Code: a file of its lines, or `lines`.

    One message may stand in several lines. A line that stands twice, and calls that a replay repeats, count once. Lines of
    sub-agents (`isSidechain`) belong to other traces.
    """
    record.out.id = next(
        (name for line in list_objects(record.peek("lines")) if (name := as_text(line.get("sessionId")))), None
    )
    seen: set[str] = set()
    spoken = ""
    calls: set[str] = set()
    for line in record.list_nodes("lines"):
        uuid = line.text("uuid")
        if line.flag("isSidechain") or (uuid and uuid in seen):
            line.drop()
        elif as_text(line.peek("type")) not in _ASIDE:
            message = line.child("message")
            goes_on = bool(spoken) and message.peek("id") == spoken
            spoken = as_text(message.peek("id")) or ""
            _read_line(line, calls, goes_on=goes_on)
        seen.add(uuid)
    return None


def _read_line(line: Cursor, calls: set[str], *, goes_on: bool) -> None:
    """Read a line. `goes_on`: it holds more parts of the message before it."""
    message = line.child("message", of="a message")
    parts = [part for part in list_objects(message.peek("content")) if part.get("type") == "tool_use"]
    made = {f"{part.get('id')} {part.get('name')}" for part in parts}
    line.take("toolUseResult")
    if not message:
        if line.peek("type") == "result" and line.flag("is_error"):
            line.out.end_with(Ending("error", f"{line.path}/is_error"))
        line.leave("a line without a message")
        return
    line.take("type")
    if line.flag("isApiErrorMessage"):
        message.drop()
        line.out.miss_reply(message.path, "a reply that the API failed to give")
    elif made and made <= calls:
        message.drop()  # a replay
    elif goes_on:
        message.take("role")
        for part in message.parts("content"):
            add_part(part)
        line.out.end_reply(message.members, message.path)
    else:
        read_message(message, find_speaker(message))
    calls |= made


_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def _name_codex_session(line: JsonObject) -> str | None:
    """Return the session that a line belongs to: a file holds one."""
    return "rollout" if "payload" in line and "timestamp" in line and "type" in line else None


@Format(score=94, hint="lines with a payload and a timestamp", session=_name_codex_session)
def codex(record: Cursor) -> Tools:
    """A rollout of Codex: a file of its lines, or `lines`.

    Lines of the type `response_item` hold items of the Responses API; the others repeat them or say what they cost. A command
    failed if its exit code is not 0.
    """
    for line in record.list_nodes("lines"):
        payload, kind = line.child("payload", of="an item"), line.peek("type")
        if not payload:
            line.leave("a line that is no item")
            continue
        line.take_all("timestamp", "type")
        if kind == "session_meta":
            record.out.id = payload.text("id") or record.out.id
        elif kind != "response_item":
            payload.leave("a line that is no item")
        elif payload.peek("type") in _OUTPUTS:
            _read_output(payload)
        else:
            read_messages([payload])
    return None


def _read_output(payload: Cursor) -> None:
    payload.take("type")
    returned = parse_text(payload.take("output"))
    holder = returned if isinstance(returned, dict) and "output" in returned else {}
    code = find_object(holder, "metadata").get("exit_code")
    content = parse_text(holder["output"]) if holder else returned
    result = ToolResult(content, isinstance(code, int) and code != 0)
    payload.out.add_result(payload.text("call_id") or None, result, path=payload.path)

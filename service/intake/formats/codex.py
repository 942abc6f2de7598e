"""A rollout of Codex: the lines of its JSONL file in `lines`, as a file of them is read.

Lines of the type `response_item` hold items of the Responses API; the others repeat them or say what they cost. A command
failed if its exit code is not 0.
"""

from __future__ import annotations

from service.core.json.members import JsonObject, find_object
from service.core.trace import ToolResult
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools, recognise_lines
from service.intake.messages import read_messages
from service.intake.texts import parse_text

_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def _read(record: Cursor) -> Tools:
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
            read_messages(record.out, [payload])
    return None


def _read_output(payload: Cursor) -> None:
    payload.take("type")
    returned = parse_text(payload.take("output"))
    holder = returned if isinstance(returned, dict) and "output" in returned else {}
    code = find_object(holder, "metadata").get("exit_code")
    content = parse_text(holder["output"]) if holder else returned
    result = ToolResult(content, isinstance(code, int) and code != 0)
    payload.out.add_result(payload.text("call_id") or None, result, path=payload.path)


def _name_session(line: JsonObject) -> str | None:
    """Return the session that a line belongs to: a file holds one."""
    return "rollout" if "payload" in line and "timestamp" in line and "type" in line else None


FORMATS = (
    Format(
        name="codex",
        read=_read,
        recognise=recognise_lines(_name_session),
        score=94,
        summary="A rollout of Codex: a file of its lines, or `lines`.",
        hint="lines with a payload and a timestamp",
        session=_name_session,
    ),
)

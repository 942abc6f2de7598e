"""A session of Claude Code: the lines of its JSONL file in `lines`, as a file of them is read.

One message may stand in several lines with its id; a line that stands twice, and a call that a replay repeats, count once.
Lines of sub-agents (`isSidechain`) belong to other traces. A line with `isApiErrorMessage` is a failure of the API and no reply.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from service.core.json.members import JsonObject, as_text, find_object, list_items, list_objects
from service.intake.build import Transcript
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import find_speaker, leave_message, read_message
from service.intake.unread_parts.endings import Ending

_ASIDE = frozenset(
    [
        *(
            "summary",
            "progress",
            "attachment",
            "file-history-snapshot",
            "file-history-delta",
            "queue-operation",
            "mode",
        ),
        *("permission-mode", "last-prompt", "ai-title", "custom-title", "agent-name", "cost-state", "system"),
    ]
)
"""Lines that are none of the conversation."""


def read(record: Cursor, out: Transcript) -> Tools:
    """Read the lines. Raises InputError: a call without a name."""
    out.id = next(
        (name for line in list_objects(record.peek("lines")) if (name := as_text(line.get("sessionId")))), None
    )
    lines = [line for line in record.list_nodes("lines") if not _is_aside(line)]
    for message in _list_messages(lines, out):
        speaker = find_speaker(message)
        if speaker is None:
            leave_message(message)
        else:
            read_message(out, message, speaker)
            message.close()
    ended = next((line for line in lines if line.peek("type") == "result"), None)
    if ended is not None and ended.flag("is_error"):
        out.end_with(Ending("error", f"{ended.path}/is_error"))
    return None


def _is_aside(line: Cursor) -> bool:
    """Whether a line is none of the conversation; it is then read."""
    if line.peek("isSidechain") is True or line.peek("type") in _ASIDE:
        line.drop()
        return True
    return False


def _list_messages(lines: list[Cursor], out: Transcript) -> Iterator[Cursor]:
    """Iterate over the messages, each with the parts of all its lines."""
    seen: set[JsonValue] = set()
    calls: set[JsonValue] = set()
    waiting: dict[str, JsonValue] = {}
    path = ""
    for line in lines:
        uuid = line.take("uuid")
        message = find_object(line.members, "message")
        failed = line.flag("isApiErrorMessage")
        line.drop()
        if (uuid is not None and uuid in seen) or not message:
            continue
        seen |= {uuid} - {None}
        if failed:
            out.miss_reply(f"{line.path}/message", "a reply that the API failed to give")
            continue
        content = message.get("content")
        parts: list[JsonValue] = [content] if isinstance(content, str) else _drop_replayed(content, calls)
        if waiting and message.get("id") is not None and message.get("id") == waiting.get("id"):
            joined: list[JsonValue] = [*list_items(waiting["content"]), *parts]
            waiting = {**waiting, **message, "content": joined}
            continue
        if waiting:
            yield Cursor(waiting, out, path, "a message")
        waiting, path = {**message, "content": parts}, f"{line.path}/message"
    if waiting:
        yield Cursor(waiting, out, path, "a message")


def _drop_replayed(content: JsonValue, calls: set[JsonValue]) -> list[JsonValue]:
    """Return the parts, without calls that were made before."""
    parts: list[JsonValue] = []
    for part in content if isinstance(content, list) else ():
        made = part.get("id") if isinstance(part, dict) and part.get("type") == "tool_use" else None
        if made is None or made not in calls:
            parts.append(part)
        if made is not None:
            calls.add(made)
    return parts


def _name_session(line: JsonObject) -> str | None:
    """Return the session that a line of a file belongs to, "" if that of the lines around it."""
    named = as_text(line.get("sessionId")) if "type" in line and "messages" not in line else None
    return "" if named is None and "leafUuid" in line else named


def _recognise(record: JsonObject) -> bool:
    return any(_name_session(line) for line in list_objects(record.get("lines")))


FORMAT = Format(
    name="claude_code",
    read=read,
    recognise=_recognise,
    summary="A session of Claude Code: a file of its lines, or `lines`.",
    hint="lines with a sessionId and a type",
    rank=5,
    place=29,
    session=_name_session,
)

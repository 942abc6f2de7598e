"""OpenAI Assistants: the run steps of a thread, newest first as the API lists them, in `steps` or a page's `data`.

The thread's `messages` may stand beside them; without them, what a step says is only named. A function's output is null
until it is submitted.
"""

from __future__ import annotations

from collections.abc import Sequence

from service.core.json.members import JsonObject, as_text, find_object, list_objects
from service.core.trace import ToolResult
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.parts import take_call
from service.intake.texts import parse_text
from service.intake.tools import read_tools
from service.intake.unread_parts.endings import Ending

_WHOLE = (None, "completed")


def _read(record: Cursor) -> Tools:
    messages, steps = _list_page(record, "messages"), _list_page(record, "steps", "data")
    known = {as_text(message.peek("id")) for message in messages}
    for one in sorted([*messages, *steps], key=_get_time):
        details = one.child("step_details")
        one.take_all("id", "type", "object", "created_at")
        if "role" in one:
            parts = one.parts("content")
            texts = [part.child("text").text("value") or part.text("text", "refusal") for part in parts]
            record.out.say("user" if one.text("role") == "user" else "assistant", "\n".join(texts))
        elif details.peek("type") == "tool_calls":
            _read_calls(details)
        elif details.child("message_creation").text("message_id") not in known:
            record.out.miss_reply(one.path, "a message of which the run's steps hold only the id")
        status = one.text("status")
        if status not in ("", *_WHOLE):
            record.out.end_with(Ending(status, f"{one.path}/status"))
    run = record.child("run")
    if run.peek("status") not in _WHOLE:
        record.out.end_with(Ending(run.text("status"), "/run/status"))
    return read_tools(record.take("tools") or run.take("tools"))


def _list_page(record: Cursor, *names: str) -> Sequence[Cursor]:
    """Return the items of a list, or of a page of the API, oldest first."""
    for name in names:
        nodes = record.list_nodes(name) or record.child(name).list_nodes("data")
        if nodes:
            return nodes[::-1] if _get_time(nodes[0]) > _get_time(nodes[-1]) else nodes
    return ()


def _get_time(one: Cursor) -> float:
    time = one.peek("created_at")
    return time if isinstance(time, (int, float)) else 0.0


def _read_calls(details: Cursor) -> None:
    details.out.say("assistant", "")
    for call in details.items("tool_calls", of="a call"):
        function = call.child("function")
        output = function.take("output")
        details.out.call(take_call(call), parallel=True)
        if output is not None:
            details.out.answer(ToolResult(parse_text(output)))


def _recognise(record: JsonObject) -> bool:
    pages = [record, find_object(record, "steps")]
    listed = [step for page in pages for name in ("steps", "data") for step in list_objects(page.get(name))]
    return any(step.get("object") == "thread.run.step" for step in listed)


FORMATS = (
    Format(
        name="assistants",
        read=_read,
        recognise=_recognise,
        score=89,
        summary="The run steps of an OpenAI Assistants thread, with its messages and its run if they are known.",
        hint="steps, or a page's data, of the object thread.run.step",
    ),
)

"""A conversation as lines of text, each with who speaks before it."""

from __future__ import annotations

from typing import Literal

from pydantic import with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject
from service.core.trace import Trace
from service.intake.build import Transcript
from service.intake.calls import build_tool_call
from service.intake.format import Format
from service.intake.shapes import OPEN
from service.intake.unread_parts.members import define_members, note_unread_members


@with_config(OPEN)
class LinesTrace(TypedDict):
    """Lines such as `user: Hi` and `call: look`."""

    format: Literal["lines"]
    lines: list[str]


RECORD = define_members("the trace", "format lines")


def read(record: LinesTrace) -> Trace:
    """The trace of a validated record."""
    transcript = Transcript()
    for line in record["lines"]:
        who, _, what = line.partition(": ")
        if who == "call":
            transcript.call(build_tool_call(None, what, None))
        else:
            transcript.say("user" if who == "user" else "assistant", what)
    note_unread_members(transcript, record, RECORD, "")
    return transcript.build_trace(record, trace_id=None, tools=None)


def _recognise(record: JsonObject) -> bool:
    return isinstance(record.get("lines"), list)


FORMAT = Format(LinesTrace, read, _recognise, rank=80, hint="lines")

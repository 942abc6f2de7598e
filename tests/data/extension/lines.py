"""A conversation as lines of text, each with who speaks before it."""

from __future__ import annotations

from typing import Literal

from pydantic import with_config
from typing_extensions import TypedDict

from service.core.trace import Trace
from service.intake.accounting import account_members, members_of
from service.intake.build import Transcript, tool_call
from service.intake.format import Format, Given
from service.intake.shapes import OPEN


@with_config(OPEN)
class LinesTrace(TypedDict):
    """Lines such as `user: Hi` and `call: look`."""

    format: Literal["lines"]
    lines: list[str]


RECORD = members_of("the trace", "format lines")


def read(record: LinesTrace) -> Trace:
    """The trace of a validated record."""
    transcript = Transcript()
    for line in record["lines"]:
        who, _, what = line.partition(": ")
        if who == "call":
            transcript.call(tool_call(None, what, None))
        else:
            transcript.say("user" if who == "user" else "assistant", what)
    account_members(transcript, record, RECORD, "")
    return transcript.trace(record, trace_id=None, tools=None)


def _recognise(record: Given) -> bool:
    return isinstance(record.get("lines"), list)


FORMAT = Format(LinesTrace, read, _recognise, rank=80, marks="lines")

"""A conversation as lines of text, each with who speaks before it."""

from __future__ import annotations

from service.intake.cursor import Cursor
from service.intake.format import Format, Tools, take_tools
from service.intake.texts import build_tool_call


@Format(score=20, signs=("lines[]",))
def lines(record: Cursor) -> Tools:
    """Lines such as `user: Hi` and `call: look`."""
    for line in record.items("lines", of="a line"):
        who, _, what = str(line.raw).partition(": ")
        if who == "call":
            record.out.call(build_tool_call(None, what, None))
        else:
            record.out.say("user" if who == "user" else "assistant", what)
    return take_tools(record, "tools")

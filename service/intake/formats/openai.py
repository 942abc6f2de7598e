"""Chat Completions: `messages` and `tools` as sent to the API, and `choices`, or a stream's `chunks`, as received.

A tool message without `content` says that the call returned but not what, so its step has no result. The API has no
marker for a failed tool; the optional `is_error` on a tool message serves as one.
"""

from __future__ import annotations

from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_messages, read_reply_message
from service.intake.streaming import read_chunks
from service.intake.tools import read_tools


def _read(record: Cursor) -> Tools:
    if record.peek("messages") is None and not (record.peek("choices") or record.peek("chunks")):
        raise InputError.at("/messages", "required if there are no choices")
    read_messages(record.out, record.items("messages", of="a message"), strict=True)
    sample = record.take("sample")
    choice = record.pick("choices", sample)
    if choice:
        read_reply_message(choice.child("message", of="a message"))
        record.out.end_reply(choice.members, choice.path)
    elif record.peek("chunks"):
        read_chunks(record, sample)
    if record.peek("error") and not choice and not record.out.has_replied():
        record.out.end_reply({"error": record.peek("error")}, "")
    offered = "functions" if "tools" not in record and "functions" in record else "tools"  # the legacy name
    return read_tools(record.take(offered), path=f"/{offered}")


FORMAT = Format(
    read=_read,
    recognise=lambda record: any(isinstance(record.get(name), list) for name in ("messages", "choices", "chunks")),
    score=40,
    summary="A conversation in the form of Chat Completions: `messages`, then the reply in `choices` or, streamed, in "
    "`chunks`. `sample`: which of several choices is read, from 0.",
    hint="messages, choices or chunks",
    place=1,
)

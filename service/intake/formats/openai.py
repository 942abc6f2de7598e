"""Chat Completions: `messages` and `tools` untouched, as sent to the API, and `choices` as received."""

from __future__ import annotations

from typing import Literal, NotRequired, cast

from pydantic import with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, list_objects
from service.core.trace import Trace
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.chat import ChatMessage, read_messages, read_reply
from service.intake.format import Format
from service.intake.shapes import OPEN, StateShape, Tools, pick_sample
from service.intake.streaming import CHOICE, ChunkShape, join_chunks, note_unread_chunk_members
from service.intake.tools import read_tools
from service.intake.unread_parts.endings import Ending
from service.intake.unread_parts.members import define_members, note_unread_members


@with_config(OPEN)
class ChoiceShape(TypedDict):
    """One of the replies to a request."""

    message: ChatMessage


@with_config(OPEN)
class OpenAITrace(TypedDict):
    """A conversation in the form of Chat Completions: `messages`, then the reply in `choices` or, streamed, in `chunks`.

    `sample`: which of several choices is read, from 0.
    """

    format: Literal["openai"]
    id: NotRequired[str | None]
    messages: NotRequired[list[ChatMessage]]
    choices: NotRequired[list[ChoiceShape] | None]
    chunks: NotRequired[list[ChunkShape] | None]
    sample: NotRequired[int | None]
    tools: NotRequired[Tools]
    state: NotRequired[StateShape | None]


RECORD = define_members(
    "the trace",
    "format id messages choices chunks sample tools functions state",
)


OUTCOME_MEMBERS = frozenset({"choices", "chunks", "error"})
"""Members that say what came of a request."""


def read(record: OpenAITrace) -> Trace:
    """Read a validated record.

    Raises InputError: no messages and no reply, several replies and none chosen, a tool call of nothing, unusable
    tools.
    """
    transcript = Transcript()
    replied = not OUTCOME_MEMBERS.isdisjoint(record)
    replies = _list_replies(record) if replied else []
    if "messages" not in record and not replies:
        raise InputError.at("/messages", "required if there are no choices")
    read_messages(transcript, record.get("messages", ()))
    if replies:
        read_reply(transcript, *replies[pick_sample(record.get("sample"), len(replies), "choices")])
    if replied:
        _note_ending(transcript, record)
        for index, choice in enumerate(record.get("choices") or ()):
            note_unread_members(transcript, choice, CHOICE, f"/choices/{index}")
        note_unread_chunk_members(transcript, record.get("chunks") or (), "/chunks")
    note_unread_members(transcript, record, RECORD, "")
    offered = "functions" if "tools" not in record and "functions" in record else "tools"  # the legacy name
    return transcript.build_trace(record, tools=read_tools(record.get(offered), path=f"/{offered}"))


def _note_ending(transcript: Transcript, record: OpenAITrace) -> None:
    """Report a reply that failed. In a stream, the last chunks say how it ended."""
    raw = cast("JsonObject", record)
    sample, choices = record.get("sample") or 0, list(list_objects(raw.get("choices")))
    if raw.get("error") and not choices and not transcript.has_replied():
        transcript.end_reply({"error": raw["error"]}, "")
    if choices:
        transcript.end_reply(choices[sample], f"/choices/{sample}")
        return
    ended = False
    for index, chunk in enumerate(list_objects(raw.get("chunks"))):
        for place, choice in enumerate(list_objects(chunk.get("choices"))):
            if choice.get("index", 0) == sample:
                transcript.end_reply(choice, f"/chunks/{index}/choices/{place}")
                ended = ended or bool(choice.get("finish_reason"))
        transcript.end_reply({"error": chunk.get("error")}, f"/chunks/{index}")
    if raw.get("chunks") and not ended:
        transcript.end_with(Ending("unfinished", "/chunks"))


def _list_replies(record: OpenAITrace) -> list[tuple[ChatMessage, str]]:
    """Return the replies in the record, with their pointers."""
    chunks = join_chunks(record.get("chunks") or ())
    choices = enumerate(record.get("choices") or ())
    return [
        *[(choice["message"], f"/choices/{index}/message") for index, choice in choices],
        *[(message, "/chunks") for message in chunks.values()],
    ]


def _recognise(record: JsonObject) -> bool:
    return any(isinstance(record.get(name), list) for name in ("messages", "choices", "chunks"))


FORMAT = Format(OpenAITrace, read, _recognise, rank=60, hint="messages, choices or chunks", place=1)

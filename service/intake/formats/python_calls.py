"""Calls that a model wrote as Python in its text, as it does if prompted to instead of being given tools.

`messages` are those of Chat Completions, with calls for the assistant's texts; or a question (`input`, `prompt` or
`question`, a text or messages) stands beside the model's `output` (also `response`, `result` or `completion`). A text
that consists of calls is read as calls: `[get_weather(city="Oslo"), get_time()]`, with or without brackets or a fence,
separated by commas or lines. A call whose arguments are not all named literals is unread, and so is a text that starts
like a call but is not one. Other texts stay texts.
"""

from __future__ import annotations

from service.core.json.members import JsonObject, as_text, find_text, list_objects
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_tool_call
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import find_speaker, read_message
from service.intake.python_text import holds_calls, looks_like_calls, parse_calls
from service.intake.texts import drop_thoughts, split_tags
from service.intake.tools import read_tools

_INPUTS = ("messages", "input", "prompt", "question")
_OUTPUTS = ("output", "response", "result", "completion")


def _read(record: Cursor) -> Tools:
    chosen = next((name for name in _OUTPUTS if isinstance(record.peek(name), str)), None)
    if chosen is None and "messages" not in record:
        raise InputError.at("", f"expected messages, or what the model wrote in one of {', '.join(_OUTPUTS)}")
    for name in _INPUTS:
        text = record.text(name)
        if text:
            record.out.say("user", text)
        for item in record.items(name, of="a message") if isinstance(record.peek(name), list) else ():
            for message in item.items(of="a message") if isinstance(item.raw, list) else (item,):  # grouped by turn
                _read_message(message)
    if chosen is not None:
        written = record.text(chosen)
        read_reply(record.out, written, f"/{chosen}")
        for name in _OUTPUTS:
            text = as_text(record.peek(name))
            if text and name != chosen and text != written:
                kind = "call" if holds_calls(text) else "text"
                record.out.note_unread(kind, f"/{name}", f"the member {name!r} beside {chosen!r}")
            record.take(name)
    offered = "functions" if "tools" not in record and "functions" in record else "tools"
    return read_tools(record.take(offered), path=f"/{offered}")


def _read_message(message: Cursor) -> None:
    if isinstance(message.raw, str):
        message.out.say("user", message.raw)
        return
    speaker = "tool" if message.peek("role") == "ipython" else find_speaker(message)
    if speaker == "assistant":
        content = message.take("content")
        texts = [find_text(part, "text") or "" for part in list_objects(content)]
        written = content if isinstance(content, str) else "\n".join(filter(None, texts))
        read_reply(message.out, written, f"{message.path}/content")
    else:
        read_message(message, speaker)


def read_reply(transcript: Transcript, raw: str, path: str) -> None:
    """Add what a model wrote: as calls if it consists of them, otherwise as text."""
    text = drop_thoughts(raw)
    thought = next((piece.text for piece in split_tags(raw, ("think",)) if not piece.closed), "")
    calls = parse_calls(text)
    transcript.say("assistant", text if calls is None else "")
    if thought:
        transcript.note_unread("text", path, "what follows a thought that does not end")
    if (calls is None and holds_calls(text)) or holds_calls(thought):
        transcript.note_unread("call", path, "a text that holds what looks like a call in Python")
    for call in calls or ():
        if call.arguments is None:
            transcript.note_unread(
                "call", path, f"a call of {call.name[:60]!r} whose arguments are not all named literals"
            )
        else:
            transcript.call(build_tool_call(None, call.name, call.arguments), parallel=True)


def _recognise(record: JsonObject) -> bool:
    if any(name in record for name in ("calls", "choices")):
        return False
    has_input = any(name in record for name in _INPUTS)
    texts = [record.get(name) for name in _OUTPUTS if has_input and isinstance(record.get(name), str)]
    messages = [message for message in list_objects(record.get("messages")) if message.get("role") == "assistant"]
    texts += [message.get("content") for message in messages if "tool_calls" not in message]
    texts_said = (drop_thoughts(text) for text in texts if isinstance(text, str))
    return any(looks_like_calls(text) and parse_calls(text) is not None for text in texts_said)


FORMATS = (
    Format(
        name="python_calls",
        read=_read,
        recognise=_recognise,
        score=62,
        summary="Messages, or a question and an output, with calls that the model wrote as Python.",
        hint="texts that are calls in Python",
    ),
)

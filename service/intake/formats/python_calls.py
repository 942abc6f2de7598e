"""Calls that a model wrote as Python in its text, as it does if prompted to instead of being given tools.

`messages` are those of Chat Completions, with calls for the assistant's texts; or a question (`input`, `prompt` or
`question`, a text or messages) stands beside the model's `output` (also `response`, `result` or `completion`). A text
that consists of calls is read as calls: `[get_weather(city="Oslo"), get_time()]`, with or without brackets or a fence,
separated by commas or lines. A call whose arguments are not all named literals is unread, and so is a text that starts
like a call but is not one. Other texts stay texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, find_text, list_items, list_objects
from service.core.trace import ToolResult, Trace
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_tool_call, read_result_content
from service.intake.format import Format
from service.intake.python_text import holds_calls, looks_like_calls, parse_calls
from service.intake.shapes import OPEN, Loose, StateShape, Tools
from service.intake.tags import drop_thoughts, find_unclosed_thought
from service.intake.tools import read_tools
from service.intake.unread_parts.members import define_members, note_unread_members, note_unread_value


@with_config(OPEN)
class PythonCallsTrace(TypedDict):
    """Messages, or a question and an output."""

    format: Literal["python_calls"]
    id: NotRequired[str | None]
    messages: NotRequired[list[dict[str, Loose]]]
    input: NotRequired[Loose]
    prompt: NotRequired[Loose]
    question: NotRequired[Loose]
    output: NotRequired[str | None]
    response: NotRequired[str | None]
    result: NotRequired[str | None]
    completion: NotRequired[str | None]
    tools: NotRequired[Tools]
    functions: NotRequired[Tools]
    state: NotRequired[StateShape | None]


_INPUT_MEMBERS = ("messages", "input", "prompt", "question")
_OUTPUT_MEMBERS = ("output", "response", "result", "completion")
RECORD = define_members(
    "the trace",
    f"format id tools functions state {' '.join(_INPUT_MEMBERS)} {' '.join(_OUTPUT_MEMBERS)}",
)
MESSAGE = define_members("a message", "role content")


def read(record: PythonCallsTrace) -> Trace:
    """Read a validated record. Raises InputError: neither messages nor an output, unusable tools."""
    output_name = next((name for name in _OUTPUT_MEMBERS if isinstance(record.get(name), str)), None)
    if output_name is None and "messages" not in record:
        raise InputError.at("", f"expected messages, or what the model wrote in one of {', '.join(_OUTPUT_MEMBERS)}")
    transcript = Transcript()
    for message, path in _list_messages(record):
        _read_message(transcript, message, path)
        note_unread_members(transcript, message, MESSAGE, path)
    if output_name is not None:
        read_reply(transcript, str(record.get(output_name)), f"/{output_name}")
        _note_replies(transcript, record, output_name)
    note_unread_members(transcript, record, RECORD, "")
    offered = "functions" if "tools" not in record and "functions" in record else "tools"
    return transcript.build_trace(record, tools=read_tools(record.get(offered), path=f"/{offered}"))


def _list_messages(record: PythonCallsTrace) -> Iterator[tuple[JsonObject, str]]:
    for name in _INPUT_MEMBERS:
        raw: JsonValue = record.get(name)  # pyright: ignore[reportAssignmentType] (a validated record is JSON)
        if isinstance(raw, str):
            yield {"role": "user", "content": raw}, f"/{name}"
        for index, item in enumerate(list_items(raw)):
            for place, message in enumerate(item if isinstance(item, list) else [item]):  # BFCL's questions have turns
                path = f"/{name}/{index}/{place}" if isinstance(item, list) else f"/{name}/{index}"
                yield (message if isinstance(message, dict) else {"role": "user", "content": message}), path


def _read_message(transcript: Transcript, message: JsonObject, path: str) -> None:
    role, content = message.get("role"), message.get("content")
    if role in ("tool", "function", "ipython"):
        called = find_text(message, "tool_call_id"), find_text(message, "name")
        transcript.add_result(called[0], ToolResult(read_result_content(content)), path=path, tool=called[1])
    elif role == "assistant":
        read_reply(transcript, _join_texts(content), f"{path}/content")
    elif role in ("user", "system", "developer"):
        transcript.say("user" if role == "user" else "system", _join_texts(content))
    else:
        note_unread_value(transcript, dict(message), path, "a message of an unknown role", holds="text")


def _join_texts(content: JsonValue) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text for part in list_objects(content) if (text := find_text(part, "text")))


def _note_replies(transcript: Transcript, record: PythonCallsTrace, chosen: str) -> None:
    """Report what else the model may have written."""
    for name in _OUTPUT_MEMBERS:
        text = record.get(name)
        if name != chosen and isinstance(text, str) and text and text != record.get(chosen):
            what = f"the member {name!r} beside {chosen!r}"
            transcript.note_unread("call" if holds_calls(text) else "text", f"/{name}", what)


def read_reply(transcript: Transcript, raw: str, path: str) -> None:
    """Add what a model wrote: as calls if it consists of them, otherwise as text."""
    text, thought = drop_thoughts(raw), find_unclosed_thought(raw)
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
    has_input = any(name in record for name in _INPUT_MEMBERS)
    texts = [record.get(name) for name in _OUTPUT_MEMBERS if has_input and isinstance(record.get(name), str)]
    messages = [message for message in list_objects(record.get("messages")) if message.get("role") == "assistant"]
    texts += [message.get("content") for message in messages if "tool_calls" not in message]
    texts_said = (drop_thoughts(text) for text in texts if isinstance(text, str))
    return any(looks_like_calls(text) and parse_calls(text) is not None for text in texts_said)


FORMAT = Format(PythonCallsTrace, read, _recognise, rank=38, hint="texts that are calls in Python", place=14)

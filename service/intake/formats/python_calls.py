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

from service.core.trace import ToolResult, Trace
from service.errors import InputError
from service.intake.accounting import account_members, lose_value, members_of
from service.intake.build import Transcript, result_content, tool_call
from service.intake.format import Format
from service.intake.python_text import holds_calls, looks_like_calls, parse_calls
from service.intake.shapes import OPEN, Loose, StateShape, Tools, read_state
from service.intake.speech import Given, find_text, list_items, list_objects
from service.intake.tags import drop_thoughts, find_endless_thought
from service.intake.tools import read_tools


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


_ASKED = ("messages", "input", "prompt", "question")
_REPLIED = ("output", "response", "result", "completion")
RECORD = members_of(
    "the trace",
    f"format id tools functions state {' '.join(_ASKED)} {' '.join(_REPLIED)}",
    "model latency input_token_count output_token_count expected expected_response ground_truth category",
)
MESSAGE = members_of("a message", "role content", "id name tool_call_id timestamp")


def read(record: PythonCallsTrace) -> Trace:
    """Read a validated record. Raises InputError: neither messages nor an output, unusable tools."""
    replied = next((name for name in _REPLIED if isinstance(record.get(name), str)), None)
    if replied is None and "messages" not in record:
        raise InputError.at("", f"expected messages, or what the model wrote in one of {', '.join(_REPLIED)}")
    transcript = Transcript()
    for message, path in _list_messages(record):
        _read_message(transcript, message, path)
        account_members(transcript, message, MESSAGE, path)
    if replied is not None:
        read_reply(transcript, str(record.get(replied)), f"/{replied}")
        _account_replies(transcript, record, replied)
    account_members(transcript, record, RECORD, "")
    offered = "functions" if "tools" not in record and "functions" in record else "tools"
    return transcript.trace(
        record,
        trace_id=record.get("id"),
        tools=read_tools(record.get(offered), path=f"/{offered}"),
        state=read_state(record.get("state")),
    )


def _list_messages(record: PythonCallsTrace) -> Iterator[tuple[Given, str]]:
    for name in _ASKED:
        given: JsonValue = record.get(name)  # pyright: ignore[reportAssignmentType] (a validated record is JSON)
        if isinstance(given, str):
            yield {"role": "user", "content": given}, f"/{name}"
        for index, item in enumerate(list_items(given)):
            for place, message in enumerate(item if isinstance(item, list) else [item]):  # BFCL's questions have turns
                path = f"/{name}/{index}/{place}" if isinstance(item, list) else f"/{name}/{index}"
                yield (message if isinstance(message, dict) else {"role": "user", "content": message}), path


def _read_message(transcript: Transcript, message: Given, path: str) -> None:
    role, content = message.get("role"), message.get("content")
    if role in ("tool", "function", "ipython"):
        called = find_text(message, "tool_call_id"), find_text(message, "name")
        transcript.result(called[0], ToolResult(result_content(content)), path=path, tool=called[1])
    elif role == "assistant":
        read_reply(transcript, _join(content), f"{path}/content")
    elif role in ("user", "system", "developer"):
        transcript.say("user" if role == "user" else "system", _join(content))
    else:
        lose_value(transcript, dict(message), path, "a message of an unknown role", holds="text")


def _join(content: JsonValue) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text for part in list_objects(content) if (text := find_text(part, "text")))


def _account_replies(transcript: Transcript, record: PythonCallsTrace, chosen: str) -> None:
    """Report what else the model may have written."""
    for name in _REPLIED:
        text = record.get(name)
        if name != chosen and isinstance(text, str) and text and text != record.get(chosen):
            what = f"the member {name!r} beside {chosen!r}"
            transcript.lose("call" if holds_calls(text) else "text", f"/{name}", what)


def read_reply(transcript: Transcript, given: str, path: str) -> None:
    """Add what a model wrote: as calls if it consists of them, otherwise as text."""
    text, thought = drop_thoughts(given), find_endless_thought(given)
    calls = parse_calls(text)
    transcript.say("assistant", text if calls is None else "")
    if thought:
        transcript.lose("text", path, "what follows a thought that does not end")
    if (calls is None and holds_calls(text)) or holds_calls(thought):
        transcript.lose("call", path, "a text that holds what looks like a call in Python")
    for call in calls or ():
        if call.arguments is None:
            transcript.lose("call", path, f"a call of {call.name[:60]!r} whose arguments are not all named literals")
        else:
            transcript.call(tool_call(None, call.name, call.arguments), parallel=True)


def _recognise(record: Given) -> bool:
    if any(name in record for name in ("calls", "choices")):
        return False
    asked = any(name in record for name in _ASKED)
    texts = [record.get(name) for name in _REPLIED if asked and isinstance(record.get(name), str)]
    messages = [message for message in list_objects(record.get("messages")) if message.get("role") == "assistant"]
    texts += [message.get("content") for message in messages if "tool_calls" not in message]
    said = (drop_thoughts(text) for text in texts if isinstance(text, str))
    return any(looks_like_calls(text) and parse_calls(text) is not None for text in said)


FORMAT = Format(PythonCallsTrace, read, _recognise, rank=38, marks="texts that are calls in Python", place=14)

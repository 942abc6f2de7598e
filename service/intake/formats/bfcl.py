"""Single-turn outputs on the Berkeley Function-Calling Leaderboard (ShishirPatil/gorilla): a question with an output.

`calls` is the decoded output, `[{name: {param: value}}]`. It is null if decoding failed; `result` is then the raw
output: a text is the answer, a list `[{name: "<JSON string>"}]` holds calls, some of which may not parse. Without
`calls`, a text that consists of calls in Python is read as calls. All calls are made by one message.
`underscore_to_dot` says that the model could not write "." in a name and was shown "_" instead: tools and gold are
renamed to match. The leaderboard's own type names ("dict", "float", "tuple") stay in the parameters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject
from service.core.trace import ToolCall, ToolDef, Trace
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_tool_call
from service.intake.chat import ChatMessage, read_messages
from service.intake.format import Format
from service.intake.formats.python_calls import read_reply
from service.intake.python_text import looks_like_calls
from service.intake.shapes import OPEN, Loose, Tools
from service.intake.texts import parse_text
from service.intake.tools import read_tools
from service.intake.unread_parts.members import define_members, note_unread_members
from service.intake.unread_parts.repeated_calls import PossibleCall
from service.intake.unread_parts.suspects import find_calls

Question = str | list[ChatMessage] | list[list[ChatMessage]]
Calls = list[dict[str, Loose]]


@with_config(OPEN)
class BfclTrace(TypedDict):
    """A question with `functions` (also `function`), an output and perhaps `possible_answer` (also `ground_truth`)."""

    format: Literal["bfcl"]
    id: str
    category: NotRequired[str | None]
    question: Question
    functions: NotRequired[Tools]
    function: NotRequired[Tools]
    calls: NotRequired[Calls | None]
    result: NotRequired[str | Calls | None]
    underscore_to_dot: NotRequired[bool | None]
    possible_answer: NotRequired[Calls | list[str] | None]
    ground_truth: NotRequired[Calls | list[str] | None]


RECORD = define_members(
    "the output",
    "format id question functions function calls result underscore_to_dot possible_answer ground_truth category",
)


def read(record: BfclTrace) -> Trace:
    """Read a validated record. Raises InputError: neither calls nor result, unusable functions."""
    if "calls" not in record and "result" not in record:
        raise InputError.at("", "expected a BFCL output in calls or result")
    transcript = Transcript()
    _read_question(transcript, record["question"])
    result = record.get("result")
    if isinstance(result, str) and "calls" not in record:
        read_reply(transcript, result, "/result")
    else:
        _read_output(transcript, record.get("calls"), result)
    note_unread_members(transcript, record, RECORD, "")
    return transcript.build_trace(record, trace_id=record["id"], tools=_read_tools(record), state={})


def read_gold(record: BfclTrace) -> dict[str, JsonValue] | None:
    """Return the answer key: `{format, category, possible_answer: [{function: {param: [accepted values]}}] | None}`.

    Functions are named as the model saw them. None if the record has no key, except in the "relevance" categories,
    where no key means that no function fits.
    """
    category = record.get("category")
    answer = record.get("possible_answer", record.get("ground_truth"))
    keyed = "possible_answer" in record or "ground_truth" in record
    if not keyed and "relevance" not in (category or ""):
        return None
    answers: list[JsonValue] | None = None
    if answer is not None:
        answers = [
            call if isinstance(call, str) else {_encode_name(name, record): one for name, one in call.items()}
            for call in answer
        ]
    return {"format": "bfcl", "category": category, "possible_answer": answers}


def _read_question(transcript: Transcript, question: Question) -> None:
    """Read a question: a text, messages, or messages grouped by turn."""
    if isinstance(question, str):
        transcript.say("user", question)
        return
    read_messages(transcript, [item for item in question if not isinstance(item, list)], path="/question")
    for index, item in enumerate(question):
        if isinstance(item, list):
            read_messages(transcript, item, path=f"/question/{index}")


def _read_output(transcript: Transcript, calls: Calls | None, result: str | Calls | None) -> None:
    decoded = _list_calls(result if calls is None else calls)
    if isinstance(result, str) and not calls:
        transcript.say("assistant", result)
        if calls is not None and (looks_like_calls(result) or any(find_calls(parse_text(result), ""))):
            transcript.note_unread("call", "/result", "a call in the output, which was decoded to none,")
    elif calls is not None:
        others = [PossibleCall(call, "/result") for call in _list_calls(result)]
        transcript.note_possible_calls(others, "the output, beside what was decoded of it,", "/result", by_id=False)
    for call in decoded:
        transcript.call(call)
    transcript.close()  # the output is there, and may be empty


def _list_calls(output: str | Calls | None) -> list[ToolCall]:
    raw = output if isinstance(output, list) else ()
    return [build_tool_call(None, name, arguments) for call in raw for name, arguments in call.items()]


def _read_tools(record: BfclTrace) -> tuple[ToolDef, ...] | None:
    key = "functions" if "functions" in record else "function"
    raw = record.get(key)
    # Early question files store a lone function bare.
    lone = isinstance(raw, dict) and "name" in raw
    tools = read_tools([raw] if lone else raw, path=f"/{key}")  # pyright: ignore[reportUnknownArgumentType]
    if tools is None:
        return None
    return tuple(
        tool if "." not in tool.name else replace(tool, name=_encode_name(tool.name, record)) for tool in tools
    )


def _encode_name(name: str, record: BfclTrace) -> str:
    """Return a function's name as the model saw it."""
    return name.replace(".", "_") if record.get("underscore_to_dot") else name


def _recognise(record: JsonObject) -> bool:
    return "question" in record and ("calls" in record or "result" in record)


FORMAT = Format(BfclTrace, read, _recognise, rank=40, hint="question beside calls or result", gold=read_gold, place=5)

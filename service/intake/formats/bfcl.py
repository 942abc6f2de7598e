"""Single-turn outputs on the Berkeley Function-Calling Leaderboard (ShishirPatil/gorilla): a question with an output.

`calls` is the decoded output, `[{name: {param: value}}]`. It is null if decoding failed; `result` is then the raw
output: a text is the answer, a list `[{name: "<JSON string>"}]` holds calls, some of which may not parse. Without
`calls`, a text that consists of calls in Python is read as calls. All calls are made by one message.
`underscore_to_dot` says that the model could not write "." in a name and was shown "_" instead: tools and gold are
renamed to match. The leaderboard's own type names ("dict", "float", "tuple") stay in the parameters.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_text, list_items, list_objects
from service.core.trace import ToolCall
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_tool_call
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.formats.python_calls import read_reply
from service.intake.messages import read_messages
from service.intake.python_text import looks_like_calls
from service.intake.texts import parse_text
from service.intake.tools import read_tools
from service.intake.unread_parts.repeated_calls import PossibleCall
from service.intake.unread_parts.suspects import find_calls

_KEY = ("possible_answer", "ground_truth")


def _read(record: Cursor) -> Tools:
    if "calls" not in record and "result" not in record:
        raise InputError.at("", "expected a BFCL output in calls or result")
    _read_question(record)
    decoded, calls, result = "calls" in record, record.take("calls"), record.take("result")
    _check(calls, "/calls")
    _check(result if isinstance(result, list) else None, "/result")
    if isinstance(result, str) and not decoded:
        read_reply(record.out, result, "/result")
    else:
        _read_output(record.out, calls, result)
    for name in ("category", *_KEY):
        record.take(name)
    record.out.state = {}
    dotted = record.flag("underscore_to_dot")
    name = "functions" if "functions" in record else "function"
    listed = record.take(name)
    listed = [listed] if isinstance(listed, dict) and "name" in listed else listed  # early files store a lone one bare
    tools = read_tools(listed, path=f"/{name}")
    return tools and tuple([replace(tool, name=_encode_name(tool.name, dotted=dotted)) for tool in tools])


def _check(calls: JsonValue, path: str) -> None:
    """Raise InputError for decoded calls that are not a list of `{name: arguments}`."""
    if calls is None:
        return
    if not isinstance(calls, list):
        raise InputError.at(path, "expected an array")
    for index, call in enumerate(calls):
        if not isinstance(call, dict):
            raise InputError.at(f"{path}/{index}", "expected an object")


def _read_gold(record: JsonObject) -> dict[str, JsonValue] | None:
    category = find_text(record, "category")  # in the "relevance" categories no key means that no function fits
    if not record.keys() & set(_KEY) and "relevance" not in (category or ""):
        return None
    answer = record.get("possible_answer", record.get("ground_truth"))
    dotted = record.get("underscore_to_dot") is True
    answers: list[JsonValue] | None = None
    if answer is not None:
        answers = [
            {_encode_name(name, dotted=dotted): one for name, one in call.items()} if isinstance(call, dict) else call
            for call in list_items(answer)
        ]
    return {"format": "bfcl", "category": category, "possible_answer": answers}


def _read_question(record: Cursor) -> None:
    """Read a question: a text, messages, or messages grouped by turn."""
    text = record.text("question")
    if text:
        record.out.say("user", text)
        return
    for item in record.items("question", of="a message"):
        read_messages(record.out, item.items(of="a message") if isinstance(item.raw, list) else [item], strict=True)


def _read_output(out: Transcript, calls: JsonValue, result: JsonValue) -> None:
    decoded = _list_calls(result if calls is None else calls)
    if isinstance(result, str) and not calls:
        out.say("assistant", result)
        if calls is not None and (looks_like_calls(result) or any(find_calls(parse_text(result), ""))):
            out.note_unread("call", "/result", "a call in the output, which was decoded to none,")
    elif calls is not None:
        others = [PossibleCall(call, "/result") for call in _list_calls(result)]
        out.note_possible_calls(others, "the output, beside what was decoded of it,", "/result", by_id=False)
    for call in decoded:
        out.call(call)
    out.close()  # the output is there, and may be empty


def _list_calls(output: JsonValue) -> list[ToolCall]:
    return [build_tool_call(None, name, given) for call in list_objects(output) for name, given in call.items()]


def _encode_name(name: str, *, dotted: bool) -> str:
    """Return a function's name as the model saw it."""
    return name.replace(".", "_") if dotted else name


FORMATS = (
    Format(
        name="bfcl",
        read=_read,
        recognise=lambda record: "question" in record and ("calls" in record or "result" in record),
        score=60,
        summary="A question of the Berkeley leaderboard with `functions`, an output and perhaps `possible_answer` (`ground_truth`).",
        hint="question with calls or result",
        gold=_read_gold,
    ),
)

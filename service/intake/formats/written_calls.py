"""Calls that a model wrote into its text: as Python, or decoded by the Berkeley leaderboard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import JsonValue

from service.core.json.members import JsonObject, as_text, find_text, list_elements, list_objects
from service.core.trace import ToolCall
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools, take_tools
from service.intake.messages import find_speaker, read_message, read_messages
from service.intake.texts import (
    THOUGHT,
    build_tool_call,
    drop_thoughts,
    holds_calls,
    looks_like_calls,
    parse_calls,
    parse_text,
)
from service.intake.tools import read_tools
from service.intake.unread_parts.leftovers import Rest
from service.intake.unread_parts.suspects import list_possible_calls

# Python, as models write it that are prompted to instead of being given tools. `messages` are those of Chat Completions, with
# calls for the assistant's texts; or a question, a text or messages, stands beside the model's output. A text that consists
# of calls is read as calls: `[get_weather(city="Oslo"), get_time()]`, with or without brackets or a fence, separated by commas
# or lines. A call whose arguments are not all named literals is unread, and so is a text that starts like a call but is not
# one. Other texts stay texts.

_INPUTS = ("messages", "input", "prompt", "question")
_OUTPUTS = ("output", "response", "result", "completion")


def _read_python_calls(record: Cursor) -> Tools:
    chosen = next((name for name in _OUTPUTS if isinstance(record.peek(name), str)), None)
    if chosen is None and "messages" not in record:
        raise InputError.at("", f"expected messages, or what the model wrote in one of {', '.join(_OUTPUTS)}")
    for name in _INPUTS:
        for message in _list_asked(record, name):
            _read_message(message)
    if chosen is not None:
        written = record.text(chosen)
        _read_text(record.out, written, f"/{chosen}")
        for name in _OUTPUTS:
            text = as_text(record.peek(name))
            if text and name != chosen and text != written:
                kind = "call" if holds_calls(text) else "text"
                record.out.note_unread(kind, f"/{name}", f"the member {name!r} beside {chosen!r}")
            record.take(name)
    return take_tools(record, "tools", "functions")


def _list_asked(record: Cursor, name: str) -> Iterator[Cursor]:
    """Iterate over the messages of a question, which may be grouped by turn; a bare text is the user's."""
    if text := record.text(name):
        record.out.say("user", text)
    for item in record.items(name, of="a message") if isinstance(record.peek(name), list) else ():
        yield from item.items(of="a message") if isinstance(item.raw, list) else (item,)


def _read_message(message: Cursor) -> None:
    if isinstance(message.raw, str):
        message.out.say("user", message.raw)
        return
    speaker = "tool" if message.peek("role") == "ipython" else find_speaker(message)
    if speaker == "assistant":
        content = message.take("content")
        texts = [find_text(part, "text") or "" for part in list_objects(content)]
        written = content if isinstance(content, str) else "\n".join(filter(None, texts))
        _read_text(message.out, written, f"{message.path}/content")
    else:
        read_message(message, speaker)


def _read_text(out: Transcript, raw: str, path: str) -> None:
    """Add what a model wrote: as calls if it consists of them, otherwise as text."""
    text = drop_thoughts(raw)
    thought = next((one[1] for one in THOUGHT.finditer(raw) if not one[2]), "")
    calls = parse_calls(text)
    out.say("assistant", text if calls is None else "")
    if thought:
        out.note_unread("text", path, "what follows a thought that does not end")
    if (calls is None and holds_calls(text)) or holds_calls(thought):
        out.note_unread("call", path, "a text that holds what looks like a call in Python")
    for call in calls or ():
        if call.arguments is None:
            out.note_unread("call", path, f"a call of {call.name[:60]!r} whose arguments are not all named literals")
        else:
            out.call(build_tool_call(None, call.name, call.arguments), parallel=True)


def _is_python_calls(record: JsonObject) -> bool:
    if any(name in record for name in ("calls", "choices")):
        return False
    has_input = any(name in record for name in _INPUTS)
    texts = [record.get(name) for name in _OUTPUTS if has_input]
    messages = [message for message in list_objects(record.get("messages")) if message.get("role") == "assistant"]
    texts += [message.get("content") for message in messages if "tool_calls" not in message]
    said = (drop_thoughts(text) for text in texts if isinstance(text, str))
    return any(looks_like_calls(text) and parse_calls(text) is not None for text in said)


# Single-turn outputs on the Berkeley Function-Calling Leaderboard (ShishirPatil/gorilla): a question with an output.
#
# `calls` is the decoded output, `[{name: {param: value}}]`. It is null if decoding failed; `result` is then the raw output: a
# text is the answer, a list `[{name: "<JSON string>"}]` holds calls, some of which may not parse. Without `calls`, a text that
# consists of calls in Python is read as calls. All calls are made by one message. `underscore_to_dot` says that the model could
# not write "." in a name and was shown "_" instead: tools and gold are renamed to match. The leaderboard's own type names
# ("dict", "float", "tuple") stay in the parameters.

_KEY = ("possible_answer", "ground_truth")


def _read_bfcl(record: Cursor) -> Tools:
    if "calls" not in record and "result" not in record:
        raise InputError.at("", "expected a BFCL output in calls or result")
    read_messages(record.out, _list_asked(record, "question"), strict=True)
    decoded, calls, result = "calls" in record, record.take("calls"), record.take("result")
    for value, path in ((calls, "/calls"), (result if isinstance(result, list) else None, "/result")):
        if not isinstance(value, list) and value is not None:
            raise InputError.at(path, "expected an array")
        wrong = next((index for index, call in enumerate(value or ()) if not isinstance(call, dict)), None)
        if wrong is not None:
            raise InputError.at(f"{path}/{wrong}", "expected an object")
    if isinstance(result, str) and not decoded:
        _read_text(record.out, result, "/result")
    else:
        _read_decoded(record.out, calls, result)
    record.take_all("category", *_KEY)
    record.out.state = {}
    name = "functions" if "functions" in record else "function"
    listed = record.take(name)
    listed = [listed] if isinstance(listed, dict) and "name" in listed else listed  # early files store a lone one bare
    tools, dotted = read_tools(listed, path=f"/{name}"), record.flag("underscore_to_dot")
    return tools and tuple([replace(tool, name=_show_name(tool.name, dotted=dotted)) for tool in tools])


def _read_decoded(out: Transcript, calls: JsonValue, result: JsonValue) -> None:
    if isinstance(result, str) and not calls:
        out.say("assistant", result)
        if calls is not None and (looks_like_calls(result) or any(list_possible_calls(parse_text(result), ""))):
            out.note_unread("call", "/result", "a call in the output, which was decoded to none,")
    elif calls is not None:
        raw: list[JsonValue] = [{"name": call.name, "arguments": call.raw} for call in _list_decoded(result)]
        out.leave(Rest(raw, "/result", "the output, beside what was decoded of it,", by_id=False))
    for call in _list_decoded(result if calls is None else calls):
        out.call(call)
    out.close()  # the output is there, and may be empty


def _list_decoded(output: JsonValue) -> list[ToolCall]:
    return [build_tool_call(None, name, given) for call in list_objects(output) for name, given in call.items()]


def _show_name(name: str, *, dotted: bool) -> str:
    """Return a function's name as the model saw it."""
    return name.replace(".", "_") if dotted else name


def _find_bfcl_gold(record: JsonObject) -> dict[str, JsonValue] | None:
    category = find_text(record, "category")  # in the "relevance" categories no key means that no function fits
    if not record.keys() & set(_KEY) and "relevance" not in (category or ""):
        return None
    answer = record.get("possible_answer", record.get("ground_truth"))
    dotted = record.get("underscore_to_dot") is True
    answers: list[JsonValue] = [
        {_show_name(name, dotted=dotted): one for name, one in call.items()} if isinstance(call, dict) else call
        for call in list_elements(answer)
    ]
    return {"format": "bfcl", "category": category, "possible_answer": None if answer is None else answers}


FORMATS = (
    Format(
        name="python_calls",
        read=_read_python_calls,
        recognise=_is_python_calls,
        score=62,
        summary="Messages, or a question and an output, with calls that the model wrote as Python.",
        hint="texts that are calls in Python",
    ),
    Format(
        name="bfcl",
        read=_read_bfcl,
        recognise=lambda record: "question" in record and ("calls" in record or "result" in record),
        score=60,
        summary="A question of the Berkeley leaderboard with `functions`, an output and perhaps `possible_answer` "
        "(`ground_truth`).",
        hint="question with calls or result",
        gold=_find_bfcl_gold,
    ),
)

"""Calls that a model wrote into its text: as Python, decoded by the Berkeley leaderboard, or in tags, in fine-tuning data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.members import JsonObject, as_text, find_text, list_elements, list_objects
from service.core.json.parsing import parse_or_none
from service.core.trace import ToolCall, ToolResult
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools, holds, take_tools
from service.intake.messages import find_speaker, read_message, read_messages
from service.intake.parts import take_call
from service.intake.texts import (
    build_tool_call,
    drop_thoughts,
    holds_calls,
    looks_like_calls,
    parse_calls,
    parse_text,
    read_result_content,
    split_tags,
    unfence,
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
    thought = next((piece.text for piece in split_tags(raw, ("think",)) if not piece.closed), "")
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


# ShareGPT conversations (`from`, `value`), with calls as fine-tuning data sets write them.
#
# LLaMA-Factory gives calls a turn of their own (`function_call`, JSON of one call or a list) and their results another
# (`observation`). Hermes writes calls into the text between `<tool_call>` tags, results between `<tool_response>` tags. Results
# name no call and belong to the preceding calls in order; if one is a list as long as several parallel calls, each call takes
# its item. Tools stand in `tools`, as JSON or JSON text, or between `<tools>` tags in a system turn. Text between `<think>` tags
# is not part of what was said.

_ROLES = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "model", "chatgpt", "bot"), "assistant"),
    **dict.fromkeys(("function_call", "tool_call"), "call"),
    **dict.fromkeys(("observation", "tool", "function", "tool_response", "function_response"), "result"),
    "system": "system",
}
_TAGS = ("tool_calls?", "function_?calls?", "think")


def _read_sharegpt(record: Cursor) -> Tools:
    system = record.text("system")
    if system:
        record.out.say("system", system)
    turns = record.list_nodes("conversations")
    roles = [_ROLES.get((as_text(turn.peek("from")) or as_text(turn.peek("role")) or "").lower()) for turn in turns]
    tools = _list_tools(record, [system, *[str(turn.peek("value")) for turn in turns if turn.peek("from") == "system"]])
    calls = 0  # of the latest message
    for index, (turn, role) in enumerate(zip(turns, roles, strict=True)):
        name = "value" if "value" in turn else "content"
        value, path = turn.take(name), f"{turn.path}/{name}"
        turn.take_all("from", "role")
        if role == "result":
            alone = "result" not in (roles[index - 1] if index else None, *roles[index + 1 : index + 2])
            _read_results(record.out, value, path, calls, alone=alone)
        elif role == "call":
            parallel = index > 0 and roles[index - 1] == "call"
            if not parallel:
                record.out.say("assistant", "")
            calls = calls * parallel + _read_calls(record.out, value, path)
        elif role == "assistant":
            calls = _read_tagged(record.out, as_text(value) or "", path)
        elif role is None:
            inner = Cursor(parse_or_none(as_text(value) or "") or turn.raw, turn.out, turn.path)
            inner.leave("a turn of an unknown role", holds="text")
        else:
            record.out.say("user" if role == "user" else "system", as_text(value) or "")
        calls = 0 if role in (None, "user", "system") else calls
        turn.close()
    return tools


def _read_tagged(out: Transcript, text: str, path: str) -> int:
    """Add what a model wrote with calls in tags; return how many calls it made."""
    pieces = list(split_tags(text, _TAGS))
    said = "".join(piece.text for piece in pieces if piece.tag is None).strip()
    out.say("assistant", said)
    if any(list_possible_calls(parse_text(unfence(said)), path)):
        out.note_unread("call", path, "a text that is JSON of calls")
    for piece in pieces:
        if piece.tag == "think" and not piece.closed:
            out.note_unread("text", path, "what follows a thought that does not end")
            for inner in split_tags(piece.text, _TAGS):
                if inner.tag not in (None, "think"):
                    out.note_unread("call", path, "a call in a thought that does not end")
    return sum([_read_calls(out, piece.text, path) for piece in pieces if piece.tag not in (None, "think")])


def _read_calls(out: Transcript, value: JsonValue, path: str) -> int:
    """Add the calls in JSON, or JSON text; return how many there are. What is not a call is reported as unread."""
    raw = parse_or_none(value) if isinstance(value, str) else value
    calls = raw if isinstance(raw, list) else [raw]
    for item in calls:
        try:
            out.call(take_call(Cursor(item, out, path)), parallel=True)
        except InputError:
            out.note_unread("call", path, "a call that is no JSON object with a name")
    return len(calls)


class _Observation(NamedTuple):
    content: JsonValue
    call_id: str | None = None
    tool: str | None = None


def _read_results(out: Transcript, value: JsonValue, path: str, calls: int, *, alone: bool) -> None:
    """Read a turn of results. `calls`: those made before it; `alone`: whether no other turn holds results of these calls."""
    tagged = [piece.text for piece in split_tags(as_text(value) or "", ("tool_response",)) if piece.tag]
    content = read_result_content(value)
    raw = content if isinstance(content, list) and alone and 1 < calls == len(content) else [content]
    results = [_observe(read_result_content(text.strip())) for text in tagged] or [
        # Without tags, an object with a name and a content is a wrapping only if the name is that of a tool that was called.
        one if (one := _observe(item)).tool is None or one.tool in out.called_tools else _Observation(item)
        for item in raw
    ]
    if alone and len(results) == 1 < calls and results[0].call_id is None is results[0].tool:
        out.note_unread("result", path, "one result of several calls")
        return
    for result in results:
        out.add_result(result.call_id, ToolResult(result.content), path=path, tool=result.tool)


def _observe(content: JsonValue) -> _Observation:
    """Unwrap a result that Hermes labels with its tool's name."""
    if isinstance(content, dict) and {"name", "content"} <= content.keys() <= {"name", "content", "tool_call_id"}:
        return _Observation(content["content"], find_text(content, "tool_call_id"), find_text(content, "name"))
    return _Observation(content)


def _list_tools(record: Cursor, systems: list[str]) -> Tools:
    """Return the tools that are listed, or those between tags, a list or one per line; None if a gap there would mislead."""
    raw = record.take("tools")
    if raw is not None and raw != "":
        parsed = parse_or_none(raw) if isinstance(raw, str) else raw
        if parsed is None:
            raise InputError.at("/tools", "expected a list of tools, or one as JSON text")
        return read_tools(parsed)
    for text in [piece.text for system in systems for piece in split_tags(system, ("tools",)) if piece.tag]:
        whole, written = parse_or_none(text), [line for line in text.splitlines() if line.strip()]
        lines = whole if isinstance(whole, list) else [parse_or_none(line) for line in written]
        try:
            return read_tools(lines or None)
        except InputError:
            return None
    return None


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
    Format(
        name="sharegpt",
        read=_read_sharegpt,
        recognise=lambda record: holds(record, "conversations", "from") or holds(record, "conversations", "role"),
        score=74,
        summary="A line of a ShareGPT data set: `conversations` with calls.",
        hint="conversations",
    ),
)

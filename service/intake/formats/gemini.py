"""Gemini's `contents` of parts and the API's `candidates`, as sent or as the Python client dumps them.

A `functionResponse` with an `error` failed; a lone `output` or `result` in it is what was returned, as Google
documents it. Code that Gemini runs itself is a call of `code_execution` with its result. Thoughts stay in `raw`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, find_object, find_text, list_items, list_objects
from service.core.json.pointers import escape_token
from service.core.trace import ToolCall, ToolDef, ToolResult, Trace
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_tool_call, read_result_content
from service.intake.format import Format
from service.intake.message_parts import ReplyBuilder, list_content, note_unread_part
from service.intake.shapes import OPEN, Loose, StateShape, pick_sample
from service.intake.tools import read_tools
from service.intake.unread_parts.leftovers import About
from service.intake.unread_parts.members import (
    Members,
    define_members,
    note_unread_alternatives,
    note_unread_members,
    note_unread_value,
)
from service.intake.unread_parts.suspects import looks_like_call


@with_config(OPEN)
class GeminiTrace(TypedDict):
    """A conversation in Gemini's form: `contents`, then the reply's `candidates`.

    `sample`: which of several candidates is read, from 0.
    """

    format: Literal["gemini"]
    id: NotRequired[str | None]
    contents: NotRequired[str | list[dict[str, Loose]]]
    candidates: NotRequired[list[dict[str, Loose]] | None]
    sample: NotRequired[int | None]
    state: NotRequired[StateShape | None]


def _define_members(of: str, read: str, about: About = "record") -> Members:
    """Build `Members` with both spellings of each name: `safety_ratings` is `safetyRatings` on the wire."""
    return define_members(of, f"{read} {_CAMEL.sub(lambda at: at[1].upper(), read)}", about)


_CAMEL = re.compile(r"_([a-z])")
_REQUEST_MEMBERS = "model generation_config safety_settings tool_config cached_content labels"
RECORD = _define_members(
    "the trace",
    "format id sample state system_instruction tools contents config candidates automatic_function_calling_history",
)
CONFIG = _define_members(
    "the configuration",
    "system_instruction tools",
)
CONTENT = _define_members("a content", "role parts")
CALL = _define_members("a function call", "id name args partial_args will_continue")
RESPONSE = _define_members("a function response", "id name response", "result")
CODE = _define_members("a part of run code", "id language code outcome output")
CANDIDATE = _define_members(
    "a candidate",
    "content",
    "reply",
)


def read(record: GeminiTrace) -> Trace:
    """Read a validated record. Raises InputError: no contents and no reply, a call without a name, unusable tools."""
    raw = _to_snake_case(record)
    if "contents" not in raw and not raw.get("candidates"):
        raise InputError.at("", "expected contents, candidates or both")
    transcript = Transcript()
    _read_system(transcript, raw)
    chosen = _choose_contents(raw)
    _read_contents(transcript, raw.get(chosen), f"/{_spell(record, chosen)}")
    _read_candidates(transcript, raw.get("candidates"), record.get("sample"))
    if not transcript.has_replied():
        transcript.end_reply({"error": raw.get("error")}, "")
    if find_text(find_object(raw, "prompt_feedback"), "blockReason", "block_reason"):
        transcript.miss_reply(f"/{_spell(record, 'prompt_feedback')}", "the reply to a prompt that was blocked")
    note_unread_members(transcript, record, RECORD, "")
    names = [_spell(record, name) for name in ("contents", HISTORY)]
    note_unread_alternatives(transcript, record, names, _spell(record, chosen), "the trace")
    note_unread_members(transcript, find_object(raw, "config"), CONFIG, "/config")
    return transcript.build_trace(record, tools=_read_tools(raw))


_WORD = re.compile(r"(?<=[a-z0-9])[A-Z]")


def _to_snake(name: str) -> str:
    """Spell a member's name as the Python client does."""
    return _WORD.sub(lambda at: f"_{at[0]}", name).lower()


def _to_snake_case(raw: Mapping[str, object]) -> dict[str, JsonValue]:
    """Return the members under the names that the Python client gives them."""
    return {_to_snake(name): value for name, value in raw.items()}  # pyright: ignore[reportReturnType] (a validated record is JSON)


def _read_system(transcript: Transcript, request: JsonObject) -> None:
    raw = request.get("system_instruction") or find_object(request, "config").get("system_instruction")
    texts = [raw] if isinstance(raw, str) else _list_texts(raw)
    if texts:
        transcript.say("system", "\n".join(texts))


def _list_texts(raw: JsonValue) -> list[str]:
    parts = raw.get("parts") if isinstance(raw, dict) else raw
    return [text for part in list_objects(parts) if (text := find_text(part, "text"))]


HISTORY = "automatic_function_calling_history"


def _choose_contents(raw: JsonObject) -> str:
    """Return the member with what was said before the reply: the history, if the client made calls automatically."""
    return HISTORY if len(list_items(raw.get(HISTORY))) >= len(list_items(raw.get("contents")) or "-") else "contents"


def _spell(record: Mapping[str, object], name: str) -> str:
    """Return a member's name as the record spells it."""
    return next((raw for raw in record if _to_snake(raw) == name), name)


def _read_contents(transcript: Transcript, raw: JsonValue, path: str) -> None:
    if isinstance(raw, str):
        transcript.say("user", raw)
    for index, content in enumerate(list_items(raw)):
        if isinstance(content, dict) and "parts" in content:
            _read_content(transcript, content, f"{path}/{index}")
        else:
            note_unread_value(transcript, content, f"{path}/{index}", "a content without parts", holds="text")


def _read_candidates(transcript: Transcript, raw: JsonValue, sample: int | None) -> None:
    candidates = list(list_objects(raw))
    if candidates:
        index = pick_sample(sample, len(candidates), "candidates")
        path = f"/candidates/{index}"
        candidate = candidates[index]
        content = candidate.get("content")
        if isinstance(content, dict | None):
            _read_content(transcript, {**(content or {}), "role": "model"}, f"{path}/content")
        else:
            note_unread_value(transcript, content, f"{path}/content", "a content that is no object", holds="text")
        note_unread_members(transcript, candidate, CANDIDATE, path)
        transcript.end_reply(candidate, path)


def _read_content(transcript: Transcript, content: JsonObject, path: str) -> None:
    raw = list_content(transcript, content.get("parts"), f"{path}/parts")
    parts = [part if isinstance(part, dict) else {"?": part} for part in raw]
    if content.get("role") == "model":
        _read_reply(transcript, parts, f"{path}/parts")
    else:
        _read_input_message(transcript, parts, f"{path}/parts")
    note_unread_members(transcript, content, CONTENT, path)


IDLE = frozenset(
    {"type", "text", "thought", "thought_signature", "video_metadata", "media_resolution", "part_metadata"}
)
"""Members of a part that are read elsewhere or carry nothing that is scored."""


def _read_input_message(transcript: Transcript, parts: Sequence[JsonObject], path: str) -> None:
    """Read a user's content: results, and what was said. A content of nothing but results is no turn."""
    for index, part in enumerate(parts):
        for name, value, place in _list_members(part, f"{path}/{index}"):
            if name == "function_response" and isinstance(value, dict):
                transcript.add_result(
                    find_text(value, "id"), _read_result(value), path=place, tool=find_text(value, "name")
                )
                note_unread_members(transcript, value, RESPONSE, place)
            else:
                kind = "code_execution_call" if name == "executable_code" else name
                note_unread_part(transcript, value, kind, place, of_user=True)
    texts = [text for part in parts if (text := find_text(part, "text")) is not None]
    if texts or not any(part.keys() & {"functionResponse", "function_response"} for part in parts):
        transcript.say("user", "\n".join(texts))


def _list_members(part: JsonObject, path: str) -> Iterator[tuple[str, JsonValue, str]]:
    """Iterate over a part's members, except its text: the Python client's name, the value, the pointer."""
    if looks_like_call(part) or ("type" in part and "text" not in part):  # of another format
        yield find_text(part, "type") or "call", dict(part), path
        return
    for name, value in part.items():
        known = _to_snake(name)
        if known not in IDLE and value is not None:
            yield known, value, f"{path}/{escape_token(name)}"


def _read_reply(transcript: Transcript, parts: Sequence[JsonObject], path: str) -> None:
    speech = ReplyBuilder(transcript)
    for index, part in enumerate(parts):
        if part.get("thought") is not True and isinstance(part.get("text"), str):
            speech.say(find_text(part, "text") or "")
        for name, value, place in _list_members(part, f"{path}/{index}"):
            _read_member(transcript, speech, name, value, place)
    speech.end()


def _read_member(transcript: Transcript, speech: ReplyBuilder, name: str, value: JsonValue, path: str) -> None:
    if name == "function_call" and isinstance(value, dict):
        speech.call(_read_call(value, path))
        note_unread_members(transcript, value, CALL, path)
    elif name == "executable_code" and isinstance(value, dict):
        transcript.offer(ToolDef("code_execution"))
        speech.call(build_tool_call(find_text(value, "id"), "code_execution", _pick(value, "language", "code")))
        note_unread_members(transcript, value, CODE, path)
    elif name == "code_execution_result" and isinstance(value, dict):
        result = ToolResult(value.get("output"), value.get("outcome") not in ("OUTCOME_OK", None))
        speech.add_result(find_text(value, "id"), result, path=path, tool="code_execution")
        note_unread_members(transcript, value, CODE, path)
    else:
        note_unread_part(transcript, value, name, path)


def _read_call(raw: JsonObject, path: str) -> ToolCall:
    name = find_text(raw, "name")
    if name is None:
        raise InputError.at(path, "a function call needs a name")
    parts = list(list_objects(raw.get("partialArgs") or raw.get("partial_args")))
    if not parts or raw.get("args"):
        return build_tool_call(find_text(raw, "id"), name, raw.get("args"))
    arguments = None if raw.get("willContinue") or raw.get("will_continue") else _join_arguments(parts)
    call = build_tool_call(find_text(raw, "id"), name, arguments)
    return call if arguments is not None else replace(call, arguments=None, captured=False)


def _join_arguments(parts: Iterable[JsonObject]) -> dict[str, JsonValue] | None:
    """Join streamed arguments, `{"jsonPath": "$.city", "stringValue": "Os", "willContinue": true}`; None below the top level."""
    joined: dict[str, JsonValue] = {}
    for part in parts:
        path = _TOP_PATH.fullmatch(find_text(part, "jsonPath", "json_path") or "")
        name = next((name for name in part if name.lower().replace("_", "") in _VALUES), None)
        if path is None or name is None:
            return None
        value, before = part[name], joined.get(path[1])
        joined[path[1]] = before + value if isinstance(before, str) and isinstance(value, str) else value
    return joined


_TOP_PATH = re.compile(r"\$\.([\w-]+)")
_VALUES = ("stringvalue", "numbervalue", "boolvalue", "nullvalue")


def _pick(raw: JsonObject, *names: str) -> dict[str, JsonValue]:
    return {name: raw[name] for name in names if name in raw}


def _read_result(raw: JsonObject) -> ToolResult | None:
    if "response" not in raw:
        return None
    response = raw["response"]
    if not isinstance(response, dict):
        return ToolResult(read_result_content(response))
    if response.get("error") is not None:
        return ToolResult(read_result_content(response["error"] if len(response) == 1 else response), True)
    lone = len(response) == 1 and next(iter(response)) in ("output", "result")
    return ToolResult(read_result_content(next(iter(response.values())) if lone else response))


def _read_tools(request: JsonObject) -> tuple[ToolDef, ...] | None:
    """Return the declared functions, and the provider's own tools by their names in `tools` (`codeExecution`)."""
    config = find_object(request, "config")
    raw, at = (request["tools"], "/tools") if "tools" in request else (config.get("tools"), "/config/tools")
    if raw is None:
        return None
    tools = [tool for index, item in enumerate(list_objects(raw)) for tool in _read_declared(item, f"{at}/{index}")]
    return tuple({tool.name: tool for tool in tools}.values())


def _read_declared(raw: JsonObject, path: str) -> list[ToolDef]:
    own = _to_snake_case(raw)
    declared = own.pop("function_declarations", None)
    schemas: list[JsonValue] = [_build_declaration(_to_snake_case(item)) for item in list_objects(declared)]
    functions = read_tools(schemas, path=f"{path}/functionDeclarations") or ()
    return [*functions, *[ToolDef(name) for name, value in own.items() if value is not None]]


def _build_declaration(raw: JsonObject) -> dict[str, JsonValue]:
    schema = raw.get("parameters_json_schema", raw.get("parameters"))
    returned = raw.get("response_json_schema", raw.get("response"))
    tool: dict[str, JsonValue] = {"name": raw.get("name"), "description": raw.get("description")}
    return tool | {"parameters": _lower(schema), "outputSchema": _lower(returned)}


def _lower(schema: JsonValue) -> JsonValue:
    """Return a schema with lower-case types: Gemini's own form says `OBJECT`.

    The request parser has bounded the depth.
    """
    if isinstance(schema, list):
        return [_lower(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: value.lower() if name == "type" and isinstance(value, str) else _lower(value)
        for name, value in schema.items()
    }


def _recognise(record: Mapping[str, JsonValue]) -> bool:
    return isinstance(record.get("contents"), (list, str)) or isinstance(record.get("candidates"), list)


FORMAT = Format(GeminiTrace, read, _recognise, rank=21, hint="contents or candidates", place=8)

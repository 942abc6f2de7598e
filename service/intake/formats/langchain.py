"""LangChain messages as `messages_to_dict`, `model_dump` or `dumpd` writes them, and LangGraph states.

The state of a thread and a StateSnapshot have messages in `values`. A tool returned its ToolMessage's content; the
`artifact` is for the program, not the model, and stays in `raw` like thinking. Calls that did not parse
(`invalid_tool_calls`) are calls; those in `additional_kwargs` and in content blocks repeat them, and are read only if
there are no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict, override

from service.core.trace import ToolCall, ToolDef, ToolResult, Trace
from service.errors import InputError
from service.intake.accounting import account_members, kind_of, lose_calls, lose_value, members_of
from service.intake.build import Transcript, result_content, tool_call
from service.intake.endings import account_reply
from service.intake.format import Format
from service.intake.hosted import HOSTED, build_hosted
from service.intake.repeats import FoundCall, ReadCalls
from service.intake.shapes import OPEN, TEXTS, THINKING, Loose, StateShape, Tools, read_state
from service.intake.speech import (
    Given,
    Speech,
    find_object,
    find_text,
    list_content,
    list_items,
    list_objects,
    lose_part,
)
from service.intake.tools import read_tools


@with_config(OPEN)
class StateValues(TypedDict):
    """The values of a LangGraph state."""

    messages: list[dict[str, Loose]]


@with_config(OPEN)
class LangChainTrace(TypedDict):
    """LangChain messages or a LangGraph state, with the tools if they are known."""

    format: Literal["langchain"]
    id: NotRequired[str | None]
    messages: NotRequired[list[dict[str, Loose]]]
    values: NotRequired[StateValues]
    tools: NotRequired[Tools]
    state: NotRequired[StateShape | None]


_COMMON = "id name example response_metadata usage_metadata"
SAID = members_of("a message", "type role content", f"{_COMMON} additional_kwargs")
REPLY = members_of(
    "an AI message", "type role content tool_calls invalid_tool_calls additional_kwargs", f"{_COMMON} tool_call_chunks"
)
KWARGS = members_of(
    "additional_kwargs",
    "refusal tool_calls function_call",
    "reasoning_content reasoning thinking parsed audio annotations __gemini_function_call_thought_signatures__",
)
RESULT = members_of("a tool message", "type role content tool_call_id status", f"{_COMMON} additional_kwargs artifact")
CALL = members_of(
    "a call", "name args arguments input id call_id type function tool_call_id", "index error extras caller"
)
BLOCK = members_of(
    "a block",
    f"text refusal status output content {' '.join(CALL.read)}",
    "annotations phase citations index extras cache_control error tool_use_id artifact is_error server_name caller",
)
WRAPPING = members_of("what a message is wrapped in", "type role data lc id kwargs", "name graph")
VALUES = members_of("the state", "messages", "structured_response remaining_steps")
RECORD = members_of(
    "the trace",
    "format id messages values tools state",
    "structured_response remaining_steps next config metadata created_at updated_at parent_config checkpoint "
    "parent_checkpoint checkpoint_id parent_checkpoint_id thread_id status",
)

_ROLES = {
    "human": "user",
    "user": "user",
    "system": "system",
    "developer": "system",
    "ai": "assistant",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}


class Told(NamedTuple):
    """A message without its wrapping: its role (None if unknown), its members and their pointer."""

    role: str | None
    given: Given
    path: str


def read(record: LangChainTrace) -> Trace:
    """Read a validated record. Raises InputError: no messages, a call without a name, unusable tools."""
    transcript = Transcript()
    messages, path = _find_messages(record)
    for index, message in enumerate(messages):
        told = unwrap_message(message, f"{path}/{index}")
        _read_message(transcript, told)
        if told.given is not message:
            account_members(transcript, message, WRAPPING, f"{path}/{index}")
    account_members(transcript, record.get("values") or {}, VALUES, "/values")
    account_members(transcript, record, RECORD, "")
    return transcript.trace(
        record,
        trace_id=record.get("id"),
        tools=read_tools(record.get("tools")),
        state=read_state(record.get("state")),
    )


def _find_messages(record: LangChainTrace) -> tuple[list[dict[str, Loose]], str]:
    """Return the messages of a record, and their pointer."""
    if "messages" in record and "values" not in record:
        return record["messages"], "/messages"
    if "values" in record and "messages" not in record:
        return record["values"]["messages"], "/values/messages"
    raise InputError.at("", "expected either messages or a state's values, which hold them")


def unwrap_message(message: Given, path: str) -> Told:
    """Unwrap a message from any of the forms in which LangChain writes one.

    >>> unwrap_message({"type": "human", "data": {"content": "Hi"}}, "/0")
    Told(role='user', given={'content': 'Hi'}, path='/0/data')
    >>> unwrap_message({"lc": 1, "id": ["langchain", "AIMessageChunk"], "kwargs": {}}, "/0").role
    'assistant'
    """
    if "lc" in message:
        names = list_items(message.get("id"))
        return Told(_find_role(names[-1] if names else None), find_object(message, "kwargs"), f"{path}/kwargs")
    role = _find_role(message.get("type")) or _find_role(message.get("role"))
    if isinstance(message.get("data"), dict):
        data = find_object(message, "data")
        return Told(role or _find_role(data.get("type")) or _find_role(data.get("role")), data, f"{path}/data")
    return Told(role, message, path)


def _lose_message(transcript: Transcript, given: Given, path: str) -> None:
    """Report a message of an unknown type. One that stands for a removal says nothing."""
    if given.get("type") in ("remove", "RemoveMessage"):
        lose_calls(transcript, given, path, "a removal")
    else:
        lose_value(transcript, given, path, "a message of an unknown type", holds="text")


def _find_role(kind: JsonValue) -> str | None:
    name = str(kind).removesuffix("Chunk").removesuffix("Message")
    return _ROLES.get(name.lower())


def _read_message(transcript: Transcript, message: Told) -> None:
    role, given, path = message
    if role == "assistant":
        _read_reply(transcript, given, path)
    elif role == "tool":
        _read_result(transcript, given, path)
    elif role is None:
        _lose_message(transcript, given, path)
    else:
        _read_said(transcript, given, path, role="user" if role == "user" else "system")


def _read_said(transcript: Transcript, given: Given, path: str, *, role: Literal["user", "system"]) -> None:
    texts: list[str] = []
    for index, part in enumerate(list_content(transcript, given.get("content"), f"{path}/content")):
        text = find_text(part, "text") if isinstance(part, dict) else str(part)
        if text is not None:
            texts.append(text)
            _account_block(transcript, part, f"{path}/content/{index}")
        elif isinstance(part, dict) and "text" not in part:
            lose_part(transcript, part, str(part.get("type")), f"{path}/content/{index}", of_user=True)
    transcript.say(role, "\n".join(texts))
    account_members(transcript, given, SAID, path)


def _read_result(transcript: Transcript, given: Given, path: str) -> None:
    result = (
        ToolResult(result_content(given["content"]), given.get("status") == "error") if "content" in given else None
    )
    transcript.result(find_text(given, "tool_call_id"), result, path=path, tool=find_text(given, "name"))
    account_members(transcript, given, RESULT, path)


class Known(ReadCalls):
    """The calls of a message. A call with the id and name of one of them repeats it, whatever its arguments."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        super().__init__(calls)
        self._ids = {(call.id, call.name) for call in calls if call.id}

    @override
    def drop_repeated(self, found: Iterable[FoundCall], *, by_id: bool = False) -> Sequence[FoundCall]:
        return super().drop_repeated(
            [one for one in found if (one.call.id, one.call.name) not in self._ids], by_id=by_id
        )


def _read_reply(transcript: Transcript, given: Given, path: str) -> None:
    speech = Speech(transcript)
    extra = find_object(given, "additional_kwargs")
    found = _list_calls(transcript, given, path)
    beside = _list_calls(transcript, extra, f"{path}/additional_kwargs")
    known = Known([one.call for one in (found or beside)])
    calls = [one.call for one in (found or beside)]
    for one in known.drop_repeated(beside) if found else ():
        transcript.lose("call", one.path, "a call beside the tool_calls of a message")
    for index, part in enumerate(list_content(transcript, given.get("content"), f"{path}/content")):
        _read_part(transcript, speech, part, f"{path}/content/{index}", known)
    if not given.get("content"):
        speech.say(find_text(extra, "refusal") or "")
    for call in calls:
        speech.call(call)
    speech.end()
    account_reply(transcript, find_object(given, "response_metadata"), f"{path}/response_metadata")
    account_members(transcript, given, REPLY, path)
    account_members(transcript, extra, KWARGS, f"{path}/additional_kwargs")


def _list_calls(transcript: Transcript, given: Given, path: str) -> list[FoundCall]:
    places: list[tuple[Given, str]] = []
    for name in ("tool_calls", "invalid_tool_calls"):
        for index, call in enumerate(list_content(transcript, given.get(name), f"{path}/{name}")):
            places.append((call if isinstance(call, dict) else {}, f"{path}/{name}/{index}"))
    legacy = find_object(given, "function_call")
    if legacy:
        places.append((legacy, f"{path}/function_call"))
    for call, place in places:
        account_members(transcript, call, CALL, place)
    return [FoundCall(_call(call, place), place) for call, place in places]


def _call(given: Given, path: str) -> ToolCall:
    """Read a call in LangChain's form (`name`, `args`, `id`), or one as the provider sent it."""
    function = find_object(given, "function") or given
    name = find_text(function, "name")
    if name is None:
        raise InputError.at(path, "a call has a name")
    arguments = next((function[key] for key in ("args", "arguments", "input") if key in function), None)
    return tool_call(find_text(given, "call_id", "tool_call_id", "id"), name, arguments)


def _read_part(transcript: Transcript, speech: Speech, part: JsonValue, path: str, known: Known) -> None:
    """Read a block of a reply. `known`: the message's calls that stand beside its blocks."""
    if not isinstance(part, dict):
        speech.say(str(part))
        return
    kind = str(part.get("type"))
    text = find_text(part, "text", "refusal")
    _account_block(transcript, part, path)
    if kind in TEXTS and text is not None:
        speech.say(text)
    elif kind in HOSTED:
        call, returned = build_hosted(part)
        transcript.offer(ToolDef(call.name))
        speech.call(call, returned)
    elif kind_of(kind) == "call" and find_text(part, "name"):
        _read_call(transcript, speech, part, path, known)
    elif kind.endswith("tool_result"):
        result = ToolResult(result_content(_find_output(part)), part.get("status") == "error")
        speech.result(find_text(part, "tool_call_id", "tool_use_id"), result, path=path)
    elif kind in IDLE | TEXTS:
        lose_calls(transcript, part, path, "a block")
    else:
        lose_part(transcript, part, kind, path)


def _account_block(transcript: Transcript, part: JsonValue, path: str) -> None:
    """Report what a read block holds besides; a block of an unknown type is reported whole."""
    if isinstance(part, dict) and (part.get("type") in TEXTS or kind_of(str(part.get("type"))) != "text"):
        account_members(transcript, part, BLOCK, path)


def _find_output(part: Given) -> JsonValue:
    return part["output"] if "output" in part else part.get("content")


IDLE = THINKING | {"non_standard_annotation", "input_json_delta"}
"""Types of blocks that carry nothing that is scored."""


def _read_call(transcript: Transcript, speech: Speech, part: Given, path: str, known: Known) -> None:
    call = _call(part, path)
    if str(part.get("type")).startswith(("server_", "mcp_")):
        transcript.offer(ToolDef(call.name))
        speech.call(call, ToolResult(result_content(part["output"])) if "output" in part else None)
    elif known.drop_repeated([FoundCall(call, path)]):
        speech.call(call)


_KINDS = frozenset({"human", "ai", "HumanMessage", "AIMessage", "AIMessageChunk", "HumanMessageChunk"})


def _recognise(record: Given) -> bool:
    holders = (record, find_object(record, "values"))
    return any(is_message(message) for holder in holders for message in list_objects(holder.get("messages")))


def is_message(given: Given) -> bool:
    """Whether an object is a message in a form that only LangChain writes."""
    if given.get("lc") == 1 and "kwargs" in given:
        return True
    if given.get("type") in _KINDS:
        return "content" in given or isinstance(given.get("data"), dict)
    return given.get("type") in ("tool", "system") and "content" in given and "role" not in given


FORMAT = Format(
    LangChainTrace,
    read,
    _recognise,
    rank=46,
    marks="messages of the types human and ai, or with lc, also in values",
    place=10,
)

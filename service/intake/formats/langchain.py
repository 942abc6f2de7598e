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

from service.core.json.members import JsonObject, find_object, find_text, list_items, list_objects, read_type
from service.core.trace import ToolCall, ToolDef, ToolResult, Trace
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_tool_call, read_result_content
from service.intake.format import Format
from service.intake.hosted_tools import HOSTED_TOOLS, build_hosted
from service.intake.message_parts import ReplyBuilder, list_content, note_unread_part
from service.intake.shapes import OPEN, TEXTS, THINKING, Loose, StateShape, Tools
from service.intake.tools import read_tools
from service.intake.unread_parts.members import define_members, note_unread_members, note_unread_value
from service.intake.unread_parts.repeated_calls import PossibleCall, TraceCalls
from service.intake.unread_parts.suspects import guess_kind


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
MESSAGE = define_members("a message", "type role content")
REPLY = define_members("an AI message", "type role content tool_calls invalid_tool_calls additional_kwargs", "reply")
KWARGS = define_members(
    "additional_kwargs",
    "refusal tool_calls function_call",
)
RESULT = define_members("a tool message", "type role content tool_call_id status", "result")
CALL = define_members("a call", "name args arguments input id call_id type function tool_call_id")
BLOCK = define_members(
    "a block",
    f"text refusal status output content {' '.join(CALL.read)}",
)
WRAPPING = define_members("what a message is wrapped in", "type role data lc id kwargs")
VALUES = define_members("the state", "messages")
RECORD = define_members(
    "the trace",
    "format id messages values tools state",
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


class LangChainMessage(NamedTuple):
    """A message without its wrapping: its role (None if unknown), its members and their pointer."""

    role: str | None
    raw: JsonObject
    path: str


def read(record: LangChainTrace) -> Trace:
    """Read a validated record. Raises InputError: no messages, a call without a name, unusable tools."""
    transcript = Transcript()
    messages, path = _find_messages(record)
    for index, message in enumerate(messages):
        unwrapped = unwrap_message(message, f"{path}/{index}")
        _read_message(transcript, unwrapped)
        if unwrapped.raw is not message:
            note_unread_members(transcript, message, WRAPPING, f"{path}/{index}")
    note_unread_members(transcript, record.get("values") or {}, VALUES, "/values")
    note_unread_members(transcript, record, RECORD, "")
    return transcript.build_trace(record, tools=read_tools(record.get("tools")))


def _find_messages(record: LangChainTrace) -> tuple[list[dict[str, Loose]], str]:
    """Return the messages of a record, and their pointer."""
    if "messages" in record and "values" not in record:
        return record["messages"], "/messages"
    if "values" in record and "messages" not in record:
        return record["values"]["messages"], "/values/messages"
    raise InputError.at("", "expected either messages or a state's values that contain them")


def unwrap_message(message: JsonObject, path: str) -> LangChainMessage:
    """Unwrap a message from any of the forms in which LangChain writes one.

    >>> unwrap_message({"type": "human", "data": {"content": "Hi"}}, "/0")
    LangChainMessage(role='user', raw={'content': 'Hi'}, path='/0/data')
    >>> unwrap_message({"lc": 1, "id": ["langchain", "AIMessageChunk"], "kwargs": {}}, "/0").role
    'assistant'
    """
    if "lc" in message:
        names = list_items(message.get("id"))
        return LangChainMessage(
            _find_role(names[-1] if names else None), find_object(message, "kwargs"), f"{path}/kwargs"
        )
    role = _find_role(message.get("type")) or _find_role(message.get("role"))
    if isinstance(message.get("data"), dict):
        data = find_object(message, "data")
        return LangChainMessage(
            role or _find_role(data.get("type")) or _find_role(data.get("role")), data, f"{path}/data"
        )
    return LangChainMessage(role, message, path)


def _note_unread_message(transcript: Transcript, raw: JsonObject, path: str) -> None:
    """Report a message of an unknown type. One that stands for a removal says nothing."""
    if raw.get("type") in ("remove", "RemoveMessage"):
        note_unread_value(transcript, raw, path, "a removal")
    else:
        note_unread_value(transcript, raw, path, "a message of an unknown type", holds="text")


def _find_role(kind: JsonValue) -> str | None:
    name = str(kind).removesuffix("Chunk").removesuffix("Message")
    return _ROLES.get(name.lower())


def _read_message(transcript: Transcript, message: LangChainMessage) -> None:
    role, raw, path = message
    if role == "assistant":
        _read_reply(transcript, raw, path)
    elif role == "tool":
        _read_result(transcript, raw, path)
    elif role is None:
        _note_unread_message(transcript, raw, path)
    else:
        _read_input_message(transcript, raw, path, role="user" if role == "user" else "system")


def _read_input_message(transcript: Transcript, raw: JsonObject, path: str, *, role: Literal["user", "system"]) -> None:
    texts: list[str] = []
    for index, part in enumerate(list_content(transcript, raw.get("content"), f"{path}/content")):
        text = find_text(part, "text") if isinstance(part, dict) else str(part)
        if text is not None:
            texts.append(text)
            _note_block(transcript, part, f"{path}/content/{index}")
        elif isinstance(part, dict) and "text" not in part:
            note_unread_part(transcript, part, read_type(part), f"{path}/content/{index}", of_user=True)
    transcript.say(role, "\n".join(texts))
    note_unread_members(transcript, raw, MESSAGE, path)


def _read_result(transcript: Transcript, raw: JsonObject, path: str) -> None:
    result = ToolResult(read_result_content(raw["content"]), raw.get("status") == "error") if "content" in raw else None
    transcript.add_result(find_text(raw, "tool_call_id"), result, path=path, tool=find_text(raw, "name"))
    note_unread_members(transcript, raw, RESULT, path)


class MessageCalls(TraceCalls):
    """The calls of a message. A call with the id and name of one of them repeats it, whatever its arguments."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        super().__init__(calls)
        self._ids = {(call.id, call.name) for call in calls if call.id}

    @override
    def drop_repeated(self, found: Iterable[PossibleCall], *, by_id: bool = False) -> Sequence[PossibleCall]:
        return super().drop_repeated(
            [one for one in found if (one.call.id, one.call.name) not in self._ids], by_id=by_id
        )


def _read_reply(transcript: Transcript, raw: JsonObject, path: str) -> None:
    speech = ReplyBuilder(transcript)
    extra = find_object(raw, "additional_kwargs")
    found = _list_calls(transcript, raw, path)
    beside = _list_calls(transcript, extra, f"{path}/additional_kwargs")
    known = MessageCalls([one.call for one in (found or beside)])
    calls = [one.call for one in (found or beside)]
    for one in known.drop_repeated(beside) if found else ():
        transcript.note_unread("call", one.path, "a call beside the tool_calls of a message")
    for index, part in enumerate(list_content(transcript, raw.get("content"), f"{path}/content")):
        _read_part(transcript, speech, part, f"{path}/content/{index}", known)
    if not raw.get("content"):
        speech.say(find_text(extra, "refusal") or "")
    for call in calls:
        speech.call(call)
    speech.end()
    transcript.end_reply(find_object(raw, "response_metadata"), f"{path}/response_metadata")
    note_unread_members(transcript, raw, REPLY, path)
    note_unread_members(transcript, extra, KWARGS, f"{path}/additional_kwargs")


def _list_calls(transcript: Transcript, raw: JsonObject, path: str) -> list[PossibleCall]:
    places: list[tuple[JsonObject, str]] = []
    for name in ("tool_calls", "invalid_tool_calls"):
        for index, call in enumerate(list_content(transcript, raw.get(name), f"{path}/{name}")):
            places.append((call if isinstance(call, dict) else {}, f"{path}/{name}/{index}"))
    legacy = find_object(raw, "function_call")
    if legacy:
        places.append((legacy, f"{path}/function_call"))
    for call, place in places:
        note_unread_members(transcript, call, CALL, place)
    return [PossibleCall(_build_call(call, place), place) for call, place in places]


def _build_call(raw: JsonObject, path: str) -> ToolCall:
    """Read a call in LangChain's form (`name`, `args`, `id`), or one as the provider sent it."""
    function = find_object(raw, "function") or raw
    name = find_text(function, "name")
    if name is None:
        raise InputError.at(path, "a call needs a name")
    arguments = next((function[key] for key in ("args", "arguments", "input") if key in function), None)
    return build_tool_call(find_text(raw, "call_id", "tool_call_id", "id"), name, arguments)


def _read_part(transcript: Transcript, speech: ReplyBuilder, part: JsonValue, path: str, known: MessageCalls) -> None:
    """Read a block of a reply. `known`: the message's calls that stand beside its blocks."""
    if not isinstance(part, dict):
        speech.say(str(part))
        return
    kind = read_type(part)
    text = find_text(part, "text", "refusal")
    _note_block(transcript, part, path)
    if kind in TEXTS and text is not None:
        speech.say(text)
    elif kind in HOSTED_TOOLS:
        call, returned = build_hosted(part)
        transcript.offer(ToolDef(call.name))
        speech.call(call, returned)
    elif guess_kind(kind) == "call" and find_text(part, "name"):
        _read_call(transcript, speech, part, path, known)
    elif kind.endswith("tool_result"):
        result = ToolResult(read_result_content(part.get("output", part.get("content"))), part.get("status") == "error")
        speech.add_result(find_text(part, "tool_call_id", "tool_use_id"), result, path=path)
    elif kind in IDLE | TEXTS:
        note_unread_value(transcript, part, path, "a block")
    else:
        note_unread_part(transcript, part, kind, path)


def _note_block(transcript: Transcript, part: JsonValue, path: str) -> None:
    """Report what a read block holds besides; a block of an unknown type is reported whole."""
    kind = read_type(part)
    if isinstance(part, dict) and (kind in TEXTS or guess_kind(kind) != "text"):
        note_unread_members(transcript, part, BLOCK, path)


IDLE = THINKING | {"non_standard_annotation", "input_json_delta"}
"""Types of blocks that carry nothing that is scored."""


def _read_call(transcript: Transcript, speech: ReplyBuilder, part: JsonObject, path: str, known: MessageCalls) -> None:
    call = _build_call(part, path)
    if read_type(part).startswith(("server_", "mcp_")):
        transcript.offer(ToolDef(call.name))
        speech.call(call, ToolResult(read_result_content(part["output"])) if "output" in part else None)
    elif known.drop_repeated([PossibleCall(call, path)]):
        speech.call(call)


_KINDS = frozenset({"human", "ai", "HumanMessage", "AIMessage", "AIMessageChunk", "HumanMessageChunk"})


def _recognise(record: JsonObject) -> bool:
    holders = (record, find_object(record, "values"))
    return any(is_message(message) for holder in holders for message in list_objects(holder.get("messages")))


def is_message(raw: JsonObject) -> bool:
    """Whether an object is a message in a form that only LangChain writes."""
    if raw.get("lc") == 1 and "kwargs" in raw:
        return True
    if read_type(raw) in _KINDS:
        return "content" in raw or isinstance(raw.get("data"), dict)
    return raw.get("type") in ("tool", "system") and "content" in raw and "role" not in raw


FORMAT = Format(
    LangChainTrace,
    read,
    _recognise,
    rank=46,
    hint="messages of the types human and ai, or with lc, also in values",
    place=10,
)

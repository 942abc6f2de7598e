"""Messages of Vercel's AI SDK: UI messages (`parts`) and model messages (`tool-call`, `tool-result`).

A UI part is a call together with its result. One that awaits its result or an approval has none; one that was denied
failed, like a result of the type `error-text`, `error-json` or `execution-denied`. Parts keep their order: text after
a call that has returned is a new message. Version 4's forms (`toolInvocations`, `args`, `result`) are read too.
Reasoning and sources stay in `raw`.
"""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, as_text, find_object, find_text, list_items, list_objects, read_type
from service.core.trace import ToolCall, ToolDef, ToolResult, Trace
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.calls import build_tool_call, read_result_content
from service.intake.format import Format
from service.intake.message_parts import ReplyBuilder, list_content, note_unread_part
from service.intake.shapes import OPEN, Loose, StateShape, Tools
from service.intake.tools import read_tools
from service.intake.unread_parts.members import clip, define_members, note_unread_members, note_unread_value
from service.intake.unread_parts.repeated_calls import PossibleCall


@with_config(OPEN)
class VercelTrace(TypedDict):
    """UIMessages or ModelMessages, with the tools if they are known."""

    format: Literal["vercel"]
    id: NotRequired[str | None]
    system: NotRequired[str | None]
    messages: list[dict[str, Loose]]
    tools: NotRequired[Tools]
    state: NotRequired[StateShape | None]


RECORD = define_members("the trace", "format id system messages tools state")
MESSAGE = define_members(
    "a message",
    "role content parts toolInvocations",
)
PART = define_members(
    "a part",
    "type text toolCallId toolName input rawInput args output result isError state errorText approval providerExecuted "
    "toolInvocation",
)
IDLE = frozenset({"reasoning", "step-start", "source", "source-url", "source-document", "redacted-reasoning"})
"""Types of parts that carry nothing that is scored."""


def read(record: VercelTrace) -> Trace:
    """Read a validated record. Raises InputError: a call without a name, unusable tools."""
    transcript = Transcript()
    if record.get("system"):
        transcript.say("system", record.get("system") or "")
    for index, message in enumerate(record["messages"]):
        _read_message(transcript, message, f"/messages/{index}")
    note_unread_members(transcript, record, RECORD, "")
    return transcript.build_trace(record, tools=read_tools(record.get("tools")))


def _read_message(transcript: Transcript, message: JsonObject, path: str) -> None:
    role = message.get("role")
    key = "parts" if "parts" in message else "content"
    content = message.get(key)
    parts = list_content(transcript, content, f"{path}/{key}")
    if role == "assistant":
        _read_reply(transcript, parts, f"{path}/{key}", message)
    elif role == "tool":
        for index, part in enumerate(parts):
            _read_tool_part(transcript, part, f"{path}/{key}/{index}")
    elif role in ("user", "system", "developer"):
        _read_input_message(transcript, parts, f"{path}/{key}", role="user" if role == "user" else "system")
    else:
        note_unread_value(transcript, dict(message), path, "a message of an unknown role", holds="text")
        return
    note_unread_members(transcript, message, MESSAGE, path)
    if key == "parts":
        _note_content(transcript, message.get("content"), parts, path, replied=role == "assistant")


def _note_content(
    transcript: Transcript, content: JsonValue, parts: list[JsonValue], path: str, *, replied: bool
) -> None:
    """Report content beside a message's parts, unless it repeats their texts."""
    texts = [text for part in list_objects(parts) if (text := find_text(part, "text"))]
    if content and content not in (*texts, "".join(texts), "\n".join(texts)):
        what = "the content beside the parts of a message"
        holds = "text" if replied and isinstance(content, str) else "other"
        note_unread_value(transcript, content, f"{path}/content", what, holds=holds)


def _is_idle(part: JsonValue) -> bool:
    """Whether a part carries nothing that is scored. A tool may have the name of an approval part."""
    kind = read_type(part)
    if kind in ("tool-approval-request", "tool-approval-response"):
        return isinstance(part, dict) and "approvalId" in part and not part.keys() & {"state", "input", "args"}
    return kind in IDLE or kind.startswith("data-")


def _read_input_message(
    transcript: Transcript, parts: list[JsonValue], path: str, *, role: Literal["user", "system"]
) -> None:
    texts: list[str] = []
    for index, part in enumerate(parts):
        if isinstance(part, dict) and read_type(part) == "text":
            texts.append(find_text(part, "text") or "")
            note_unread_members(transcript, part, PART, f"{path}/{index}")
        elif _is_idle(part):
            note_unread_value(transcript, part, f"{path}/{index}", "a part")
        else:
            note_unread_part(transcript, part, read_type(part), f"{path}/{index}", of_user=True)
    transcript.say(role, "\n".join(texts))


def _read_tool_part(transcript: Transcript, part: JsonValue, path: str) -> None:
    """Read a part of a message with the role `tool`."""
    if isinstance(part, dict) and _is_result(part):
        _read_result(transcript, part, path)
        note_unread_members(transcript, part, PART, path)
    elif _is_idle(part):
        note_unread_value(transcript, part, path, "a part")
    else:
        note_unread_part(transcript, part, read_type(part), path)


def _read_result(sink: Transcript | ReplyBuilder, part: JsonObject, path: str) -> None:
    sink.add_result(
        find_text(part, "toolCallId"), _read_model_result(part), path=path, tool=find_text(part, "toolName")
    )


def _is_result(part: JsonObject) -> bool:
    """Whether a part holds what a call returned.

    In the UI, the type of an error could be that of a tool named "error".
    """
    kind = read_type(part)
    return kind == "tool-result" or (kind == "tool-error" and "error" in part and "state" not in part)


def _read_model_result(part: JsonObject) -> ToolResult | None:
    if part.get("type") == "tool-error":
        return ToolResult(read_result_content(part.get("error")), is_error=True)
    output = part.get("output")
    if isinstance(output, dict) and "type" in output:
        failed = output["type"] in ("error-text", "error-json", "execution-denied")
        return ToolResult(read_result_content(output.get("value", output.get("reason"))), failed)
    key = "output" if "output" in part else "result"
    return ToolResult(read_result_content(part[key]), part.get("isError") is True) if key in part else None


def _read_reply(transcript: Transcript, parts: list[JsonValue], path: str, message: JsonObject) -> None:
    speech = ReplyBuilder(transcript)
    for index, part in enumerate(parts):
        _read_part(transcript, speech, part, f"{path}/{index}")
    place = path.rpartition("/")[0] + "/toolInvocations"
    beside: list[PossibleCall] = []
    for index, raw in enumerate(list_objects(message.get("toolInvocations"))):
        call = _read_call(transcript, raw, f"{place}/{index}")
        note_unread_members(transcript, raw, PART, f"{place}/{index}")
        if "parts" in message:
            beside.append(PossibleCall(call, f"{place}/{index}"))
        else:
            speech.call(call, _read_ui_result(raw))
    speech.end()
    transcript.note_possible_calls(beside, "the toolInvocations beside the parts of a message", place, by_id=True)


def _read_part(transcript: Transcript, speech: ReplyBuilder, part: JsonValue, path: str) -> None:
    kind = read_type(part)
    if not isinstance(part, dict) or not _is_known(part):
        _note_unread(transcript, part, kind, path)
        return
    note_unread_members(transcript, part, PART, path)
    if kind == "text":
        speech.say(find_text(part, "text") or "")
    elif kind == "step-start":
        speech.cut()
    elif _is_result(part):
        _read_result(speech, part, path)
    elif kind == "tool-invocation":
        raw = find_object(part, "toolInvocation")
        speech.call(_read_call(transcript, raw, f"{path}/toolInvocation"), _read_ui_result(raw))
        note_unread_members(transcript, raw, PART, f"{path}/toolInvocation")
    elif not _is_idle(part):
        speech.call(_read_call(transcript, part, path), _read_ui_result(part))


def _is_known(part: JsonValue) -> bool:
    kind = read_type(part)
    return kind in ("text", "dynamic-tool") or kind.startswith("tool-") or _is_idle(part)


def _note_unread(transcript: Transcript, part: JsonValue, kind: str, path: str) -> None:
    """Report a part as unread. A UI part with a call's id and its input is a call, whatever its type says."""
    if isinstance(part, dict) and "toolCallId" in part and part.keys() & {"input", "args", "state"}:
        transcript.note_unread("call", path, f"a part of the type {clip(kind)}")
    else:
        note_unread_part(transcript, part, kind, path)


def _read_call(transcript: Transcript, part: JsonObject, path: str) -> ToolCall:
    """Read a call of either kind. If a UI part could not be parsed, `rawInput` is what the model wrote."""
    kind = read_type(part)
    named = kind.removeprefix("tool-") if kind.startswith("tool-") and kind != "tool-call" else None
    name = find_text(part, "toolName") or named
    if not name:
        raise InputError.at(path, "a call needs a toolName")
    if part.get("providerExecuted") is True:
        transcript.offer(ToolDef(name))
    raw = next((part[key] for key in ("input", "rawInput", "args") if part.get(key) is not None), None)
    return build_tool_call(find_text(part, "toolCallId"), name, raw)


def _read_ui_result(part: JsonObject) -> ToolResult | None:
    """Return what came of a call; None if nothing has yet. If a part has no state, its members tell which it is in."""
    state = part.get("state") or next((_STATES[key] for key in _STATES if key in part), None)
    if state in ("output-error", "output-denied"):
        denied = find_object(part, "approval").get("reason")
        return ToolResult(read_result_content(part.get("errorText", denied)), True)
    key = {"output-available": "output", "result": "result"}.get(as_text(state) or "")
    return ToolResult(read_result_content(part.get(key))) if key else None


_STATES = {"errorText": "output-error", "output": "output-available", "result": "result"}


_OWN_TYPES = frozenset({"tool-call", "tool-result", "tool-error", "dynamic-tool", "step-start"})
"""Types of parts that no other format has."""


def _recognise(record: JsonObject) -> bool:
    return any(map(_is_message, list_objects(record.get("messages"))))


def _is_message(message: JsonObject) -> bool:
    if "role" not in message:
        return False
    if "toolInvocations" in message or any("type" in part for part in list_objects(message.get("parts"))):
        return True
    return any(read_type(part) in _OWN_TYPES for part in list_items(message.get("content")))


FORMAT = Format(
    VercelTrace, read, _recognise, rank=44, hint="messages with parts, or with tool-call and tool-result", place=11
)

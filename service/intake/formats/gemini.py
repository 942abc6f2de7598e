"""Gemini's `contents` of parts and the API's `candidates`, as sent or as the Python client dumps them."""

from __future__ import annotations

from pydantic import JsonValue

from service.core.json.members import JsonObject, list_items, list_objects
from service.core.trace import ToolDef
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import find_speaker, read_input, read_message, read_reply_message
from service.intake.parts import to_snake
from service.intake.tools import read_tools

_SYSTEM = ("systemInstruction", "system_instruction")
_HISTORY = ("automaticFunctionCallingHistory", "automatic_function_calling_history")


def _read(record: Cursor) -> Tools:
    if "contents" not in record and not record.peek("candidates"):
        raise InputError.at("", "expected contents, candidates or both")
    config = record.child("config", of="the configuration")
    for holder in (record, config):
        name = next((name for name in _SYSTEM if holder.peek(name)), None)
        if name is not None:
            instruction = holder.child(name, of="the instruction")
            if instruction:
                read_input(instruction, "system")
            else:
                read_input(holder, "system", name)
            break
    _read_contents(record)
    candidate = record.pick("candidates", record.take("sample"))
    if candidate:
        content = candidate.child("content", of="a content")
        content.take("role")
        read_reply_message(content)
        record.out.end_reply(candidate.members, candidate.path)
    elif not record.out.has_replied():
        record.out.end_reply({"error": record.take("error")}, "")
    feedback = record.child("promptFeedback", "prompt_feedback")
    if feedback.text("blockReason", "block_reason"):
        record.out.miss_reply(feedback.path, "the reply to a prompt that was blocked")
    holder = record if "tools" in record else config
    if (listed := holder.take("tools")) is None:
        return None
    tools = [
        tool
        for index, item in enumerate(list_objects(listed))
        for tool in _read_declared(item, f"{holder.path}/tools/{index}")
    ]
    return tuple({tool.name: tool for tool in tools}.values())


def _read_contents(record: Cursor) -> None:
    """Read what was said before the reply: the history, if the client made calls automatically."""
    history = next((name for name in _HISTORY if list_items(record.peek(name))), "")
    longer = len(list_items(record.peek(history))) >= max(1, len(list_items(record.peek("contents"))))
    name = history if history and longer else "contents"
    text = record.text(name)
    if text:
        record.out.say("user", text)
        return
    for content in record.items(name, of="a content"):
        if "parts" not in content:
            content.leave("a content without parts", holds="text")
        else:
            speaker = find_speaker(content) or "user"
            read_message(content, "user" if speaker == "tool" else speaker)


def _read_declared(raw: JsonObject, path: str) -> list[ToolDef]:
    """Return the declared functions, and the provider's own tools by their names (`codeExecution`)."""
    own = {to_snake(name): value for name, value in raw.items()}
    declared = own.pop("function_declarations", None)
    schemas: list[JsonValue] = [_build_declaration(item) for item in list_objects(declared)]
    functions = read_tools(schemas, path=f"{path}/functionDeclarations") or ()
    return [*functions, *[ToolDef(name) for name, value in own.items() if value is not None]]


def _build_declaration(raw: JsonObject) -> dict[str, JsonValue]:
    own = {to_snake(name): value for name, value in raw.items()}
    schema = own.get("parameters_json_schema", own.get("parameters"))
    returned = own.get("response_json_schema", own.get("response"))
    tool: dict[str, JsonValue] = {"name": own.get("name"), "description": own.get("description")}
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


FORMAT = Format(
    read=_read,
    recognise=lambda record: (
        isinstance(record.get("contents"), (list, str)) or isinstance(record.get("candidates"), list)
    ),
    score=79,
    summary="A conversation in Gemini's form: `contents`, then the reply's `candidates`.",
    hint="contents or candidates",
    place=8,
)

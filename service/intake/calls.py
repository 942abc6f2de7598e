"""Build calls and results from what a source says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from pydantic import JsonValue

from service.core.json.members import list_objects, read_type
from service.core.json.parsing import UnreadableError, parse, read_structure
from service.core.trace import ToolCall

_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


def build_tool_call(call_id: str | None, name: str, arguments: JsonValue) -> ToolCall:
    """Build a call from arguments as the model gave them: a JSON string or, from some providers, an object.

    None, "" and white space become `{}`: several providers send them for a call without arguments. Anything else that
    is not a JSON object leaves `arguments` None and sets the problem. Never raises.
    """
    if arguments is None:
        return ToolCall(call_id or None, name, {}, arguments)
    try:
        value = parse(arguments) if type(arguments) is str else arguments
    except UnreadableError as error:
        empty = type(arguments) is str and not arguments.strip()
        return ToolCall(call_id or None, name, {} if empty else None, arguments, None if empty else str(error))
    if type(value) is dict or isinstance(value, dict):
        return ToolCall(call_id or None, name, value, arguments)
    return ToolCall(call_id or None, name, None, arguments, f"{_KINDS[type(value)]} where an object is expected")


_KINDS: Mapping[type, str] = {
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def read_result_content(raw: JsonValue) -> JsonValue:
    """Return what a tool returned. Text that spells a JSON object or array is parsed; other text stays text.

    A bare `123456` stays a string, since many ids look like numbers; so does text that is almost JSON. Parts that are
    all text are joined, one part per line; other parts (images, search results) are kept as given.
    """
    text = _join_texts(raw) if isinstance(raw, list) else raw
    if isinstance(raw, list) and len(raw) == 1 and isinstance(raw[0], dict) and list(raw[0]) == ["json"]:
        return raw[0]["json"]  # Bedrock's block
    return read_structure(text) if isinstance(text, str) else raw


def _join_texts(parts: list[JsonValue]) -> str | None:
    texts = [
        part.get("text") for part in list_objects(parts) if read_type(part) in _TEXT_PARTS or list(part) == ["text"]
    ]
    if len(texts) < len(parts) or not all(isinstance(text, str) for text in texts):
        return None
    return "\n".join(cast("list[str]", texts))

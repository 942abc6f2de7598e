"""Build calls and results from what a source says of them."""

from __future__ import annotations

from pydantic import JsonValue

from service.core.json.members import list_objects, read_type
from service.core.json.parsing import UnreadableError, parse, read_structure
from service.core.json.values import name_type
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
    kind = "a number" if type(value) is int else name_type(value)
    return ToolCall(call_id or None, name, None, arguments, f"{kind} where an object is expected")


def read_result_content(raw: JsonValue) -> JsonValue:
    """Return what a tool returned. Text that spells a JSON object or array is parsed; other text stays text.

    A bare `123456` stays a string, since many ids look like numbers; so does text that is almost JSON. Parts that are
    all text are joined, one part per line; other parts (images, search results) are kept as given.
    """
    if not isinstance(raw, list):
        return read_structure(raw) if isinstance(raw, str) else raw
    if len(raw) == 1 and isinstance(raw[0], dict) and list(raw[0]) == ["json"]:
        return raw[0]["json"]  # Bedrock's block
    parts = [part for part in list_objects(raw) if read_type(part) in _TEXT_PARTS or list(part) == ["text"]]
    texts = [text for part in parts if isinstance(text := part.get("text"), str)]
    return read_structure("\n".join(texts)) if len(texts) == len(raw) else raw

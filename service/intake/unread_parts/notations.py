"""Read what a model wrote for a call: JSON as it stands in a text, also with Python's quotes or bare keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.json.parsing import parse_or_none
from service.core.trace import ToolDef
from service.intake.texts import read_literal


class TextCall(NamedTuple):
    """A call in a text. `name` is "" and `arguments` None where they cannot be read.

    `whole`: it is closed, its arguments are an object, and it can mean nothing else.
    """

    form: str
    name: str = ""
    arguments: dict[str, JsonValue] | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Offered:
    """The tools that a text may call, each with the names of its arguments. `known`: whether the log lists its tools."""

    tools: Mapping[str, frozenset[str]]
    known: bool

    @classmethod
    def of(cls, tools: Sequence[ToolDef] | None) -> Offered:
        """Take the tools of a trace."""
        return cls({tool.name: tool.properties for tool in tools or ()}, tools is not None)


_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*):")


def read_plain(value: str) -> JsonValue:
    """Read the text of a parameter: JSON where it is an object, a list, a number or a constant."""
    text = value.strip("\n").strip()
    found = parse_or_none(text) if text[:1] in "{[-0123456789tfn" else None
    return text if found is None and text != "null" else found


def decode(text: str, at: int) -> tuple[JsonValue, int]:
    """Decode the JSON value at a place, also one with Python's quotes; return it and where it ends. None: there is none.

    Gemma's models write keys bare, and texts between marks of their own.
    """
    if "<escape>" in text or '<|"|>' in text:
        text = _BARE_KEY.sub(r'\1"\2":', text[at:].replace("<escape>", '"').replace('<|"|>', '"'))
        value, _ = decode(text, 0)
        return value, len(text)
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        end = _find_bracket_end(text, at)
        value = read_literal(text[at:end]) if end else None
    return value, end


def _find_bracket_end(text: str, at: int) -> int:
    """Return where the bracket at a place closes; 0 if it does not."""
    depth = 0
    for found in re.compile(r"[\[{]|[\]}]").finditer(text, at):
        depth += 1 if found[0] in "[{" else -1
        if not depth:
            return found.end()
    return 0


_TOOL_KEYS = ("name", "tool", "tool_name", "toolName", "function", "function_name", "action", "recipient_name")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "params", "input", "tool_input", "action_input", "kwargs")


def list_json_calls(value: JsonValue, offered: Offered, *, strict: bool) -> Iterator[TextCall]:
    """Iterate over the calls in JSON of a text. `strict`: without a mark, so that more of a call must be there."""
    if isinstance(value, list):
        for item in value:
            yield from list_json_calls(item, offered, strict=strict)
        return
    if not isinstance(value, dict):
        return
    inner = next(
        (value[key] for key in ("tool_calls", "function_call", "tool_call", "tool_uses", "calls") if value.get(key)),
        None,
    )
    inner = value.get("function") if inner is None and isinstance(value.get("function"), dict) else inner
    if isinstance(inner, (dict, list)):
        yield from list_json_calls(inner, offered, strict=strict)
        return
    call = _read_call_object(value, offered, strict=strict)
    if call is not None:
        yield call


def _read_call_object(value: dict[str, JsonValue], offered: Offered, *, strict: bool) -> TextCall | None:
    key = next((key for key in _TOOL_KEYS if isinstance(value.get(key), str)), None)
    name = cast("str", value[key]).removeprefix("functions.") if key else ""
    holder = next((one for one in _ARGUMENT_KEYS if one in value), None)
    raw = value.get(holder) if holder else None
    arguments = parse_or_none(raw) if isinstance(raw, str) else {} if raw is None else raw
    plain = arguments if isinstance(arguments, dict) else None
    if name in offered.tools:
        whole = plain is not None and (holder is not None or len(value) == 1)
        return TextCall("JSON", name, plain, whole) if whole or raw is not None else None
    only = next(iter(value.items())) if len(value) == 1 else ("", None)
    if only[0] in offered.tools and isinstance(only[1], dict):
        return TextCall("JSON", only[0], only[1], True)
    # Whatever tool it names:
    typed = value.get("type") in ("tool_use", "tool_call", "function_call")
    certain = typed or (key == "name" and (holder == "arguments" or set(value) == {"name", "parameters"}))
    if name and holder and plain is not None and (certain or not strict):
        return TextCall("JSON", name, plain, not offered.known)
    return None

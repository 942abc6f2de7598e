"""The law of intake: every part of a source is read, listed as carrying nothing that is scored, or reported as unread.

A reader declares with `Members` which members of an object it reads and which carry nothing; `note_unread_members` reports
all others to a transcript. What they hold decides what stays open: each call inside them is a call that nobody could
read; anything else is named and leaves nothing open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

from service.core.json.members import find_text
from service.core.json.pointers import build_pointer, escape_token
from service.core.trace import ToolCall, UnreadKind
from service.intake.build import Transcript, build_tool_call
from service.intake.repeated_calls import PossibleCall

JsonObject = Mapping[str, Any]
Unpack = Callable[[str, JsonValue], JsonValue]
"""Takes a member's name and value and returns the value that it encodes."""

MAX_QUOTED_NAME_CHARS = 60
"""Characters of a source's name that a reason quotes."""

_CALL_TYPE = re.compile(r"(?:^|[_-])(?:call|use|request)$|^(?:dynamic-)?tool[_-]", re.IGNORECASE)
_NO_CALL_TYPE = re.compile(r"(?:http|api|llm|model|bad|invalid)_(?:call|request)(?:_error)?$", re.IGNORECASE)
"""Calls of models and services, which are not tool calls."""
_RESULT_TYPE = re.compile(r"(?:result|output|response|return)s?$", re.IGNORECASE)
_REFERENCE = re.compile(
    r"(?i:expected|gold|golden|reference|ground_?truth|few_?shot|example)(?i:s?)(?:$|[_A-Z-].*)", re.DOTALL
)
"""Members of a record that hold a reference: what should have been done, or what was done elsewhere. Calls in them
were not made in this trace.
"""
_CALL_ID = re.compile(r"tool_?(?:use|call)_?id|call_?id", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Members:
    """The members of one type of object in a source."""

    of: str
    """What the object is, for reasons: "a message"."""
    read: frozenset[str]
    """Members that the reader reads."""
    idle: frozenset[str] = frozenset()
    """Members that carry nothing that is scored."""


def define_members(of: str, read: str, idle: str = "") -> Members:
    """Build `Members` from space-separated names."""
    return Members(of, frozenset(read.split()), frozenset(idle.split()))


def note_unread_members(
    transcript: Transcript, raw: JsonObject, members: Members, path: str, *, holds: UnreadKind = "other"
) -> None:
    """Report each member that is neither read nor idle, and the calls inside idle members.

    `holds`: the kind to report for a member that contains no call.
    """
    if members.read.issuperset(raw):
        return
    for name, value in raw.items():
        if name in members.read or value in (None, "", False, [], {}):
            continue
        what, place = f"the member {clip(name)!r} of {members.of}", f"{path}/{escape_token(name)}"
        if path == "" and _REFERENCE.fullmatch(name):
            if name not in members.idle:
                transcript.note_unread("other", place, what)
        elif name in members.idle:
            note_unread_calls(transcript, value, place, what, named=True, by_id=path != "")
        else:
            note_unread_value(transcript, value, place, what, holds=holds, by_id=path != "")


def note_unread_alternatives(
    transcript: Transcript, raw: JsonObject, names: Iterable[str], chosen: str, of: str, path: str = ""
) -> None:
    """Report the alternatives to `chosen`: members that may stand for the same thing, of which only one is read."""
    for name in names:
        if name != chosen and raw.get(name):
            what = f"the member {name!r} of {of}, beside {chosen!r},"
            note_unread_value(transcript, raw[name], f"{path}/{name}", what, by_id=path != "")


def note_unread_typed_part(transcript: Transcript, part: JsonObject, of: str, path: str, *, idle: bool = False) -> None:
    """Report an unread part by its type and by the calls in it. `of`: what the part is, such as "a block".

    `idle`: apart from calls, the part carries nothing that is scored; attachments of a user are an example.
    """
    note_unread_of_kind(
        transcript, part, f"{of} of the type {clip(part['type'])}", path, kind=guess_kind(part["type"]), idle=idle
    )


def note_unread_of_kind(
    transcript: Transcript, value: JsonValue | JsonObject, what: str, path: str, *, kind: UnreadKind, idle: bool = False
) -> None:
    """Report an unread part whose type stands somewhere other than in `type`."""
    if kind == "call":
        transcript.note_unread(kind, path, what)
    else:
        note_unread_value(transcript, value, path, what, holds="other" if idle and kind == "text" else kind)


def note_unread_value(
    transcript: Transcript, value: Any, path: str, what: str, *, holds: UnreadKind = "other", by_id: bool = True
) -> None:
    """Report a value of unknown form: the calls in it, or `holds` if it contains none."""
    if holds == "other" and _is_reply(value):
        holds = "text"
    if not note_unread_calls(transcript, value, path, what, by_id=by_id) or holds != "other":
        transcript.note_unread(holds, path, what)


def note_unread_calls(
    transcript: Transcript, value: Any, path: str, what: str, *, named: bool = False, by_id: bool = True
) -> bool:
    """Report the calls in a value that otherwise carries nothing scored; return whether there are any.

    `named`: report only calls that have more than a type (a tool, arguments or an id). `by_id`: only a call with the
    id of a call that was read may count as its repetition.
    """
    calls = [
        PossibleCall(_read_possible_call(raw, holder), place)
        for place, raw, _, holder in list_calls(value, path)
        if not named or _has_call_members(raw)
    ]
    transcript.note_possible_calls(calls, what, path, by_id=by_id)
    return bool(calls)


def _is_reply(value: Any) -> bool:
    """Whether a value looks like a model's reply in the form its provider sends."""
    raw = cast("JsonObject", value if isinstance(value, dict) else {})
    return raw.get("role") == "assistant" or any(isinstance(raw.get(key), list) for key in ("choices", "candidates"))


def clip(name: str) -> str:
    """Shorten a source's name to what a reason quotes."""
    return name if len(name) <= MAX_QUOTED_NAME_CHARS else name[:MAX_QUOTED_NAME_CHARS] + "..."


def find_calls(value: JsonValue, path: str) -> Iterator[str]:
    """Iterate over the pointers of what looks like a call in JSON of unknown form: outermost ones only, in order.

    >>> list(
    ...     find_calls(
    ...         {"steps": [{"type": "tool_use", "name": "f"}, {"function": {"name": "g", "arguments": "{}"}}]}, "/x"
    ...     )
    ... )
    ['/x/steps/0', '/x/steps/1/function']
    """
    return (place for place, *_ in list_calls(value, path))


def list_calls(
    value: JsonValue, path: str, unpack: Unpack | None = None
) -> Iterator[tuple[str, dict[str, JsonValue], str, JsonObject]]:
    """Iterate over what looks like a call.

    Yields its pointer, the call, the name of the member that holds it, and the object around it. Content returned by a
    tool is never a call, whatever it looks like. `unpack` decodes each value before it is examined.
    """
    # The path down, each level with its remaining items. A pointer is built only for a call that is found.
    levels: list[Iterator[tuple[str | int, JsonValue]]] = [iter([("", value)])]
    tokens: list[str | int] = []
    holders: list[JsonObject] = [{}]
    while levels:
        step = next(levels[-1], None)
        if step is None:
            levels.pop()
            holders.pop()
            del tokens[-1:]
            continue
        token, here = step
        if unpack:
            here = unpack(str(token), here)
        if isinstance(here, dict) and looks_like_call(here):
            yield path + build_pointer(*tokens[1:], token) if levels[1:] else path, here, str(token), holders[-1]
        elif isinstance(here, dict | list):
            levels.append(_list_below(here))
            holders.append(here if isinstance(here, dict) else {})
            tokens.append(token)


_RESULT_MEMBERS = frozenset({"content", "contents", "response", "result", "output"})


def _list_below(here: dict[str, JsonValue] | list[JsonValue]) -> Iterator[tuple[str | int, JsonValue]]:
    if isinstance(here, list):
        return iter(enumerate(here))
    kind = here.get("type")
    is_result = here.get("role") in ("tool", "function") or (isinstance(kind, str) and guess_kind(kind) == "result")
    return ((key, item) for key, item in here.items() if not (is_result and key in _RESULT_MEMBERS))


def _read_possible_call(raw: JsonObject, holder: JsonObject) -> ToolCall:
    """Read what looks like a call as far as possible. Without a name it matches no known call.

    `holder`: the enclosing object, which may carry the id.
    """
    inner = raw.get("function")
    own = cast("JsonObject", inner) if isinstance(inner, dict) else raw
    call_id = next((value for one in (raw, holder) if (value := find_text(one, *_CALL_IDS))), None)
    name = find_text(own, *_TOOLS) or next((tool for key, tool in _SEARCHES.items() if own.get(key)), "")
    return build_tool_call(call_id, name, next((own[key] for key in _ARGUMENTS if key in own), None))


def _has_call_members(raw: JsonObject) -> bool:
    """Whether an object has a call's tool, arguments or id, or is Gemini's record of a search."""
    return bool(raw.keys() & {*_TOOLS, *_ARGUMENTS, *_CALL_IDS[:-1], *_SEARCHES, "function"})


_CALL_IDS = ("call_id", "tool_call_id", "toolCallId", "toolUseId", "tool_use_id", "id")
_TOOLS = ("name", "tool", "toolName", "tool_name")
_SEARCHES: Mapping[str, str] = {
    **dict.fromkeys(("webSearchQueries", "web_search_queries"), "google_search"),
    **dict.fromkeys(("urlMetadata", "url_metadata"), "url_context"),
}
"""Members by which Gemini reports a call of a tool that it runs itself, and the name of that tool."""
_ARGUMENTS = ("arguments", "args", "input", "parameters")


def looks_like_call(raw: JsonObject) -> bool:
    """Whether an object is a call.

    It is one by its type, by a name with arguments or a call id, or as Gemini's record of a search.

    >>> (
    ...     looks_like_call({"type": "mcp_call"}),
    ...     looks_like_call({"name": "f", "args": {}}),
    ...     looks_like_call({"name": "run 1"}),
    ... )
    (True, True, False)
    """
    kind = raw.get("type") or raw.get("part_kind")
    if isinstance(kind, str) and guess_kind(kind) == "call":
        return True
    if any(raw.get(name) for name in _SEARCHES):
        return True
    named = any(isinstance(raw.get(name), str) for name in _TOOLS)
    with_arguments = any(isinstance(raw.get(name), dict | str) for name in ("arguments", "args"))
    given_something = bool(raw.keys() & {"arguments", "args", "input"})
    return named and (with_arguments or (given_something and any(map(_CALL_ID.fullmatch, raw))))


def guess_kind(type_name: str) -> UnreadKind:
    """Guess from its name what an unread type may be: a call, a result, or text.

    >>> guess_kind("mcp_tool_use"), guess_kind("tool-weather"), guess_kind("tool_result"), guess_kind("audio")
    ('call', 'call', 'result', 'text')
    """
    if _RESULT_TYPE.search(type_name):
        return "result"
    if _NO_CALL_TYPE.search(type_name):
        return "text"
    return "call" if _CALL_TYPE.search(type_name) else "text"

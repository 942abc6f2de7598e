"""The law of intake: every part of a source is read, stands on a list of what carries nothing that is scored, or is unread.

A reader says with `Members` which members of an object it reads and which carry nothing; `account_members` tells a transcript of
all others. What they hold decides what they leave open: each call in them is a call that nobody could read, and anything else
is named and opens nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

from service.core.json.pointers import build_pointer, escape_token
from service.core.trace import ToolCall, UnreadKind
from service.intake.build import Transcript, tool_call
from service.intake.repeats import FoundCall

Given = Mapping[str, Any]
Unpack = Callable[[str, JsonValue], JsonValue]
"""Makes of a member, by its name and value, what it spells."""

LONGEST_NAME = 60
"""Characters of a name from a source that are repeated in a reason."""

_CALL_TYPE = re.compile(r"(?:^|[_-])(?:call|use|request)$|^(?:dynamic-)?tool[_-]", re.IGNORECASE)
_NO_CALL_TYPE = re.compile(r"(?:http|api|llm|model|bad|invalid)_(?:call|request)(?:_error)?$", re.IGNORECASE)
"""Calls of models and services, which are no calls of tools."""
_RESULT_TYPE = re.compile(r"(?:result|output|response|return)s?$", re.IGNORECASE)
_REFERENCE = re.compile(
    r"(?i:expected|gold|golden|reference|ground_?truth|few_?shot|example)(?i:s?)(?:$|[_A-Z-].*)", re.DOTALL
)
"""Members of a record that hold what should have been done, or what was done elsewhere: no call in them was made here."""
_CALL_ID = re.compile(r"tool_?(?:use|call)_?id|call_?id", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Members:
    """The members of one sort of object in a source."""

    of: str
    """What the object is, as in "a message"."""
    read: frozenset[str]
    """Those that the reader reads."""
    idle: frozenset[str] = frozenset()
    """Those that carry nothing that is scored."""


def members_of(of: str, read: str, idle: str = "") -> Members:
    """The same from names that are parted by spaces."""
    return Members(of, frozenset(read.split()), frozenset(idle.split()))


def account_members(
    transcript: Transcript, given: Given, members: Members, path: str, *, holds: UnreadKind = "other"
) -> None:
    """Tells the transcript of each member that is neither read nor idle, and of the calls in those that are idle.

    `holds`: what one may hold that holds no call.
    """
    if members.read.issuperset(given):
        return
    for name, value in given.items():
        if name in members.read or value in (None, "", False, [], {}):
            continue
        what, place = f"the member {clip(name)!r} of {members.of}", f"{path}/{escape_token(name)}"
        if path == "" and _REFERENCE.fullmatch(name):
            if name not in members.idle:
                transcript.lose("other", place, what)
        elif name in members.idle:
            lose_calls(transcript, value, place, what, named=True, by_id=path != "")
        else:
            lose_value(transcript, value, place, what, holds=holds, by_id=path != "")


def account_others(
    transcript: Transcript, given: Given, names: Iterable[str], chosen: str, of: str, path: str = ""
) -> None:
    """Tells of members that stand for one thing, of which one was chosen to be read."""
    for name in names:
        if name != chosen and given.get(name):
            what = f"the member {name!r} of {of}, beside {chosen!r},"
            lose_value(transcript, given[name], f"{path}/{name}", what, by_id=path != "")


def account_part(transcript: Transcript, part: Given, of: str, path: str, *, idle: bool = False) -> None:
    """Tells the transcript of a part that is not read, as in "a block", by its type and by the calls in it.

    `idle`: what is no call in it carries nothing that is scored, as what a user shows.
    """
    account_unknown(
        transcript, part, f"{of} of the type {clip(part['type'])}", path, kind=kind_of(part["type"]), idle=idle
    )


def account_unknown(
    transcript: Transcript, value: JsonValue | Given, what: str, path: str, *, kind: UnreadKind, idle: bool = False
) -> None:
    """The same of a part that names its type elsewhere than in `type`."""
    if kind == "call":
        transcript.lose(kind, path, what)
    else:
        lose_value(transcript, value, path, what, holds="other" if idle and kind == "text" else kind)


def lose_value(
    transcript: Transcript, value: Any, path: str, what: str, *, holds: UnreadKind = "other", by_id: bool = True
) -> None:
    """Tells the transcript of something of which nothing is known but that it holds calls, or else what `holds` says."""
    if holds == "other" and _is_reply(value):
        holds = "text"
    if not lose_calls(transcript, value, path, what, by_id=by_id) or holds != "other":
        transcript.lose(holds, path, what)


def lose_calls(
    transcript: Transcript, value: Any, path: str, what: str, *, named: bool = False, by_id: bool = True
) -> bool:
    """Tells the transcript of the calls in something that carries nothing else that is scored; whether there are any.

    `named`: only of those that have more of a call than its type.
    `by_id`: only what has the id of a call that is read may be that one again.
    """
    calls = [
        FoundCall(_read_found(given, holder), place)
        for place, given, _, holder in list_calls(value, path)
        if not named or _says_more(given)
    ]
    transcript.doubt(calls, what, path, by_id=by_id)
    return bool(calls)


def _is_reply(value: Any) -> bool:
    """Whether something is what a model replied, as its provider gave it."""
    given = cast("Given", value if isinstance(value, dict) else {})
    return given.get("role") == "assistant" or any(
        isinstance(given.get(key), list) for key in ("choices", "candidates")
    )


def clip(name: str) -> str:
    """A name from a source, as far as it is repeated."""
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "..."


def find_calls(value: JsonValue, path: str) -> Iterator[str]:
    """The pointers of what looks like a call in JSON of which nothing is known: the outermost ones, in their order.

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
) -> Iterator[tuple[str, dict[str, JsonValue], str, Given]]:
    """The same with each call itself, the name of the member that holds it, and the object around it.

    What a result returned is no call, whatever it looks like. `unpack` makes of each value what it spells.
    """
    # The way down, each level with what is left of it: a pointer is written only for what is found.
    levels: list[Iterator[tuple[str | int, JsonValue]]] = [iter([("", value)])]
    tokens: list[str | int] = []
    around: list[Given] = [{}]
    while levels:
        step = next(levels[-1], None)
        if step is None:
            levels.pop()
            around.pop()
            del tokens[-1:]
            continue
        token, here = step
        if unpack:
            here = unpack(str(token), here)
        if isinstance(here, dict) and looks_like_call(here):
            yield path + build_pointer(*tokens[1:], token) if levels[1:] else path, here, str(token), around[-1]
        elif isinstance(here, dict | list):
            levels.append(_list_below(here))
            around.append(here if isinstance(here, dict) else {})
            tokens.append(token)


_RETURNED = frozenset({"content", "contents", "response", "result", "output"})


def _list_below(here: dict[str, JsonValue] | list[JsonValue]) -> Iterator[tuple[str | int, JsonValue]]:
    if isinstance(here, list):
        return iter(enumerate(here))
    kind = here.get("type")
    is_result = here.get("role") in ("tool", "function") or (isinstance(kind, str) and kind_of(kind) == "result")
    return ((key, item) for key, item in here.items() if not (is_result and key in _RETURNED))


def _read_found(given: Given, holder: Given) -> ToolCall:
    """What looks like a call, as far as it can be read; without a name it is none that is known.

    `holder`: the object that it stands in, which may have its id.
    """
    inner = given.get("function")
    own = cast("Given", inner) if isinstance(inner, dict) else given
    call_id = next((value for one in (given, holder) if (value := _find(one, _CALL_IDS))), None)
    name = _find(own, _TOOLS) or next((tool for key, tool in _SEARCHES.items() if own.get(key)), "")
    return tool_call(call_id, name, next((own[key] for key in _ARGUMENTS if key in own), None))


def _says_more(given: Given) -> bool:
    """Whether something has a tool, arguments or an id of a call, or is what Gemini tells of one."""
    return bool(given.keys() & {*_TOOLS, *_ARGUMENTS, *_CALL_IDS[:-1], *_SEARCHES, "function"})


def _find(given: Given, names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := given.get(name), str) and value), None)


_CALL_IDS = ("call_id", "tool_call_id", "toolCallId", "toolUseId", "tool_use_id", "id")
_TOOLS = ("name", "tool", "toolName", "tool_name")
_SEARCHES: Mapping[str, str] = {
    **dict.fromkeys(("webSearchQueries", "web_search_queries"), "google_search"),
    **dict.fromkeys(("urlMetadata", "url_metadata"), "url_context"),
}
"""What alone tells of a call of a tool that Gemini runs itself, and that tool."""
_ARGUMENTS = ("arguments", "args", "input", "parameters")


def looks_like_call(given: Given) -> bool:
    """Whether an object is a call by its type, by a name that stands with arguments or with the id of a call, or by its trace.

    >>> (
    ...     looks_like_call({"type": "mcp_call"}),
    ...     looks_like_call({"name": "f", "args": {}}),
    ...     looks_like_call({"name": "run 1"}),
    ... )
    (True, True, False)
    """
    kind = given.get("type") or given.get("part_kind")
    if isinstance(kind, str) and kind_of(kind) == "call":
        return True
    if any(given.get(name) for name in _SEARCHES):
        return True
    named = any(isinstance(given.get(name), str) for name in _TOOLS)
    with_arguments = any(isinstance(given.get(name), dict | str) for name in ("arguments", "args"))
    given_something = bool(given.keys() & {"arguments", "args", "input"})
    return named and (with_arguments or (given_something and any(map(_CALL_ID.fullmatch, given))))


def kind_of(type_name: str) -> UnreadKind:
    """What a part or an item of a type that is not read may be, by its name: a call, a result, or something that was said.

    >>> kind_of("mcp_tool_use"), kind_of("tool-weather"), kind_of("tool_result"), kind_of("audio")
    ('call', 'call', 'result', 'text')
    """
    if _RESULT_TYPE.search(type_name):
        return "result"
    if _NO_CALL_TYPE.search(type_name):
        return "text"
    return "call" if _CALL_TYPE.search(type_name) else "text"

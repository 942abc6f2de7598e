"""What readers left: judged once, when the calls and tools of the trace are known.

What could be a call, a result or a reply is unread; what says that a reply was cut makes its calls and texts unread;
the rest is ignored.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Literal, NamedTuple

from pydantic import JsonValue

from service.core.json.pointers import escape_token
from service.core.json.walk import list_leaves
from service.core.trace import ToolCall, UnreadablePart, UnreadKind
from service.intake.unread_parts.endings import EMPTY, Ending, list_missing
from service.intake.unread_parts.repeated_calls import PossibleCall, TraceCalls
from service.intake.unread_parts.suspects import Hint, Known, classify, list_suspects
from service.intake.unread_parts.text_calls import find_thought_calls

About = Literal["record", "reply", "result"]
"""What an object tells of: the whole trace, what the assistant said, what a tool returned."""
MAX_NAMED = 50
"""Distinct descriptions of ignored parts that are named one by one."""
_MAX_LOSS_LEVELS = 3
_MEASURES = re.compile(r"score|eval|metric|rubric|feedback", re.IGNORECASE)
"""Members that tell how good a trace is: what they name is no call unless it is a tool."""
_PIECES = re.compile(r"delta|chunk|fragment|partial", re.IGNORECASE)
"""Members that hold pieces of a stream."""
_LABEL = re.compile(
    r"(?:^|_)id$|Id$|type|status|state|model|name|role|object|time|date|created|kind|version|signature|encrypted|format|code"
)
"""Members that hold a label and no words."""
_ASIDE = re.compile(
    r"usage|meta|think|reason|thought|score|eval|config|setting|param|user|profile|feature|flag|cost|price|prompt|tool|"
    r"header|label|tag",
    re.IGNORECASE,
)
"""Members that tell of something beside the reply: a status in them is not its ending."""


class Rest(NamedTuple):
    """A part that no reader took."""

    value: JsonValue
    path: str
    what: str
    """What it is, for reasons."""
    name: str = ""
    """The member that holds it."""
    about: About = "record"
    holds: UnreadKind = "other"
    """What it counts as if nothing is found in it."""
    by_id: bool = True
    """Whether only a call with the id of a call that was read may be its repetition."""
    calls: bool = True
    """Whether calls in it are looked for."""
    silent: bool = False
    """Whether it is of a reply or a result that is else empty."""
    shown: bool = False
    """Whether a user shows it: it is named, and leaves nothing open."""
    turn: int = 0


class ReplyEnd(NamedTuple):
    """How a reply ended, whether it made a call, and its turn."""

    ending: Ending
    called: bool
    turn: int


Leftover = UnreadablePart | Rest | ReplyEnd
"""What a reader left. An unreadable part of the kind "other" is ignored, and named once with a count."""


def sort_leftovers(
    left: Sequence[Leftover], calls: TraceCalls, known: Known
) -> tuple[list[UnreadablePart], list[UnreadablePart]]:
    """Return what is unread of what readers left, and what is ignored, given the calls of the trace."""
    unread: list[UnreadablePart] = []
    first: dict[str, str] = {}
    times: Counter[str] = Counter()
    for one in left:
        judged = _judge_rest(one, calls, known) if isinstance(one, Rest) else [] if isinstance(one, ReplyEnd) else [one]
        for part in judged:
            if part.kind == "other" and not (isinstance(one, Rest) and one.shown):
                first.setdefault(part.reason, part.path)
                times[part.reason] += 1
            else:
                unread.append(part)
    ends: list[UnreadablePart] = []
    for one in left:
        if isinstance(one, ReplyEnd):
            kinds = {part.kind for part in (*unread, *ends) if part.turn == one.turn}
            if one.ending.reason != EMPTY or not kinds & {"call", "text"}:
                ends += _list_lost(one.ending, one.turn, called=one.called or "call" in kinds)
    ignored = [
        UnreadablePart("other", path, reason if times[reason] == 1 else f"{reason}, in {times[reason]} places", 0)
        for reason, path in islice(first.items(), MAX_NAMED)
    ]
    if (more := len(first) - MAX_NAMED) > 0:
        ignored.append(UnreadablePart("other", "", f"{more} more sorts of members and parts are not read", 0))
    return list(_drop_second_losses([*ends, *unread])), ignored


def _judge_rest(rest: Rest, calls: TraceCalls, known: Known) -> list[UnreadablePart]:
    """List what a part may hold; one that holds nothing of a trace is of the kind "other"."""
    suspects = [*list_suspects(rest.value, rest.path, known, rest.name)] if rest.calls else []
    if known.tools and _MEASURES.search(rest.name):
        suspects = [one for one in suspects if one.call is None or one.call.name in known.tools]
    found = [PossibleCall(one.call, one.path) for one in suspects if one.call is not None]
    thought = calls.drop_repeated(_list_thought_calls(rest, known))
    new = [*thought, *calls.drop_repeated(found, by_id=rest.by_id)]
    parts = [UnreadablePart("call", one.path, f"a call in {rest.what} is not read", rest.turn) for one in new]
    parts += [
        UnreadablePart("result", one.path, f"a result in {rest.what} is not read", rest.turn, one.step)
        for one in suspects
        if one.kind == "result"
    ]
    for ending in _list_losses(rest.value, rest.name, rest.path, 0):
        parts += _list_lost(ending, rest.turn, called=True, result=rest.about == "result")
    holds = rest.holds
    if holds == "other" and _may_reply(rest):
        holds = "result" if rest.about == "result" else "text"
    if holds != "other" or not parts:
        repeats = " repeats calls that are read, and" if found and not new and holds == "other" else ""
        parts.append(UnreadablePart(holds, rest.path, f"{rest.what}{repeats} is not read", rest.turn))
    return parts


_ENDED = "a reply that ended with"


def _drop_second_losses(parts: Iterable[UnreadablePart]) -> Iterator[UnreadablePart]:
    """Iterate over the parts, with the first sign alone that the replies of a turn lack calls, or texts."""
    seen: set[tuple[str, int]] = set()
    for part in parts:
        sign = _ENDED in part.reason
        if not (sign and (part.kind, part.turn) in seen):
            yield part
        if sign or part.kind == "text":
            seen.add((part.kind, part.turn))


def _list_lost(ending: Ending, turn: int, *, called: bool, result: bool = False) -> Iterator[UnreadablePart]:
    """Iterate over what a reply with this ending may lack; with `result`, it is a result that was cut."""
    if result:
        yield UnreadablePart("result", ending.path, f"a result that is marked {ending.reason[:60]!r} is not read", turn)
        return
    what = "an empty reply" if ending.reason == EMPTY else f"{_ENDED} {ending.reason[:60]!r}"
    for kind in list_missing(ending.reason, called=called):
        yield UnreadablePart(kind, ending.path, f"{'a call in ' if kind == 'call' else ''}{what} is not read", turn)


_THOUGHT = re.compile(r"think|reason|thought", re.IGNORECASE)


def _list_thought_calls(rest: Rest, known: Known) -> Iterator[PossibleCall]:
    """Iterate over the calls that a model wrote into a part that is a thought, by its name."""
    offered = replace(known, listed=bool(known.tools))
    for leaf in list_leaves(rest.value, limit=20) if _THOUGHT.search(f"{rest.name} {rest.what}") else ():
        for call in find_thought_calls(leaf.value, offered) if isinstance(leaf.value, str) else ():
            made = ToolCall(None, call.name, call.arguments, call.arguments)
            yield PossibleCall(made, f"{rest.path}{leaf.pointer}")


def _may_reply(rest: Rest) -> bool:
    """Whether a part looks like a reply as providers send it, or holds something where what was said or returned is missing."""
    raw = rest.value if isinstance(rest.value, dict) else {}
    if raw.get("role") == "assistant" or any(isinstance(raw.get(key), list) for key in ("choices", "candidates")):
        return True
    if not rest.silent or _ASIDE.search(rest.name) or _LABEL.search(rest.name):
        return False
    leaves = [leaf for leaf in list_leaves(rest.value, limit=50) if not _LABEL.search(leaf.key)]
    texts = any(isinstance(leaf.value, str) and leaf.value.strip() for leaf in leaves)
    values = any(leaf.value is not None and not isinstance(leaf.value, str) for leaf in leaves)
    return texts or (values and rest.about == "result")


def _list_losses(value: JsonValue, name: str, path: str, level: int) -> Iterator[Ending]:
    """Iterate over signs in an unread part that a reply or a result was cut, withheld or is not whole."""
    if not name:
        return
    key = classify(name)
    if isinstance(value, str):
        if Hint.ENDING in key and level < 2 and list_missing(value, called=True):
            yield Ending(value, path)
    elif isinstance(value, list) and value and _PIECES.search(name) and all(isinstance(one, str) for one in value):
        yield Ending("unfinished", path)
    elif Hint.LOSS in key and isinstance(value, (bool, int)) and value:
        yield Ending(f"truncated: {name}", path)
    elif isinstance(value, dict) and level < _MAX_LOSS_LEVELS and not _ASIDE.search(name):
        for inner, item in value.items():
            yield from _list_losses(item, inner, f"{path}/{escape_token(inner)}", level + 1)

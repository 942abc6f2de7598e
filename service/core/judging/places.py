"""Number the values of tool results, so that a judge refers to one by a short number and invents no pointer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.pointers import build_pointer, split_pointer
from service.core.json.values import format_value
from service.core.judging.excerpts import find_terms, has_note, is_note

MAX_PLACES = 40
"""Values that are numbered in one question; of more, those that share words and numbers with the judged text."""

WITH_RESULTS = frozenset({"conversation", "turn", "result", "results"})
"""The parts of a prompt that show results."""


class ShownPlace(NamedTuple):
    """A value of a result: its pointer, how it is shown in the list, and whether all of it was shown."""

    pointer: str
    text: str
    whole: bool


def list_shown_places(parts: Mapping[str, JsonValue], about: Iterable[str]) -> tuple[ShownPlace, ...]:
    """List the values of the results that these parts show; a judge counts them from 1. `about`: the judged texts.

    >>> event = {"role": "result", "tool": "get_tide", "path": "/steps/0/result/content", "content": {"height_m": 3.2}}
    >>> list_shown_places({"results": [event]}, ["It is 3.2 m high."])
    (ShownPlace(pointer='/steps/0/result/content/height_m', text='get_tide height_m: 3.2', whole=True),)
    """
    shown = [value for name, value in parts.items() if name in WITH_RESULTS]
    events = [event for value in shown for event in (value if isinstance(value, list) else [value])]
    places = {place.pointer: place for event in events if isinstance(event, dict) for place in _iter_places(event)}
    if len(places) > MAX_PLACES:
        terms = find_terms("\n".join(about))
        near = sorted(places.values(), key=lambda one: len(find_terms(one.text) & terms), reverse=True)
        chosen = {one.pointer for one in near[:MAX_PLACES]}
        return tuple([one for one in places.values() if one.pointer in chosen])
    return tuple(places.values())


def _iter_places(event: Mapping[str, JsonValue]) -> Iterator[ShownPlace]:
    path = event.get("path")
    if not isinstance(path, str) or "content" not in event:
        return
    start, tool = split_pointer(path), event.get("tool")
    for keys, value in _iter_leaves(event["content"], ()):
        name = " ".join([str(tool), *keys])
        yield ShownPlace(build_pointer(*start, *keys), f"{name}: {format_value(value, 80)}", not has_note(value))


def _iter_leaves(value: JsonValue, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], JsonValue]]:
    """Yield each value that has no parts, but for notes on what is left out."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, dict | list) and value:
        for key, item in inside:
            yield from _iter_leaves(item, (*keys, str(key)))
    elif not is_note(value):
        yield keys, value

"""What a judge may refer to: values of tool results by short numbers, so that it invents no pointer, and what it may quote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.pointers import build_pointer, split_pointer
from service.core.json.values import format_value
from service.core.judging.excerpts import find_terms, has_note, is_note
from service.core.judging.quote_coverage import list_clauses

MAX_PLACES = 40
"""Values that are numbered in one question; of more, those that share words and numbers with the judged text."""

MAX_PASSAGES = 80
"""Passages that a grammar offers as quotes; of more, those of the last parts, which hold what is judged."""

MAX_PASSAGE_CHARS = 200
"""Characters of a passage on offer; a longer one is cut, and is still a quote."""

_NO_PASSAGES = frozenset({"role", "path", "parameters", "pointer", "sources", "origin"})
"""Keys whose values say nothing about what was said and done, or are ours."""

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
    places = {place.pointer: place for event in iter_shown_results(parts) for place in _iter_places(event)}
    if len(places) > MAX_PLACES:
        terms = find_terms("\n".join(about))
        near = sorted(places.values(), key=lambda one: len(find_terms(one.text) & terms), reverse=True)
        chosen = {one.pointer for one in near[:MAX_PLACES]}
        return tuple([one for one in places.values() if one.pointer in chosen])
    return tuple(places.values())


def iter_shown_results(parts: Mapping[str, JsonValue]) -> Iterator[Mapping[str, JsonValue]]:
    """Yield the results that these parts show, each with its `path` and its `content`."""
    shown = [value for name, value in parts.items() if name in WITH_RESULTS]
    for event in [event for value in shown for event in (value if isinstance(value, list) else [value])]:
        if isinstance(event, dict) and isinstance(event.get("path"), str) and "content" in event:
            yield event


def _iter_places(event: Mapping[str, JsonValue]) -> Iterator[ShownPlace]:
    start, tool = split_pointer(str(event["path"])), event.get("tool")
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


def list_passages(values: Sequence[JsonValue]) -> tuple[str, ...]:
    """List what may be quoted of the parts of a prompt: sentences, their clauses, and whole values, but for single words.

    >>> list_passages([[{"role": "user", "text": "Hello. Is 5 paid?"}], {"tool": "look", "arguments": {"id": 5}}])
    ('5', 'Is 5 paid?')
    """
    found: dict[str, None] = {}
    for value in reversed(values):
        for text in _iter_quotable(value):
            listed = list_clauses([text]) if isinstance(text, str) else (format_value(text),)
            short = [one[:MAX_PASSAGE_CHARS].strip() for one in listed]
            found |= dict.fromkeys(
                [one for one in short if " " in one or "_" in one or any(char.isdigit() for char in one)]
            )
    return tuple(found)[:MAX_PASSAGES]


def _iter_quotable(value: JsonValue) -> Iterator[JsonValue]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in _NO_PASSAGES:
                yield from _iter_quotable(item)
    elif isinstance(value, list):
        for item in value:
            yield from _iter_quotable(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value

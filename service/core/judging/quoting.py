"""What a judge may refer to and quote: values of results by short numbers, so that it invents no pointer, and passages.

And which sentences of a text no claim quotes: a judge that leaves some out has not judged the whole text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.pointers import build_pointer, split_pointer
from service.core.json.values import format_value
from service.core.judging.excerpts import find_terms, has_note, is_note

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
            telling = [one for one in short if " " in one or "_" in one or any(char.isdigit() for char in one)]
            found |= dict.fromkeys(telling)
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


# Sentences, and what covers them.

_END = re.compile(r"(?<=[.!?\u2026])[\"'\u201d\u2019)\]*]*\s+|(?<=[\u3002\uff01\uff1f])|\n+")
"""The end of a sentence: after its punctuation and any closing quotes or brackets, and at each line break."""

_SHORT_FOR = re.compile(r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|St|No|Nr|Inc|Ltd|Co|vs|approx|e\.g|i\.e|etc|a\.m|p\.m))\.\Z")
"""An abbreviation, whose full stop ends no sentence."""

_LONGEST = 8
"""Characters in the longest abbreviation, plus one before it."""

_CLAUSE_END = re.compile(r"(?<=\S)[,;:] | (?=(?:and|but) )")
"""Where a part of a sentence ends."""

_SAYS_SOMETHING = re.compile(r"[^\W_]{2}|\d")

_WORD = re.compile("[\u2e80-\U0003ffff]{2}|[^\\W\\d_]{2,}")
"""A word; in scripts without spaces between words, any two characters."""
_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_LIST_MARK = re.compile(r"\d{1,3}[.)](?:\s|\Z)")
"""The number before a list item, which states nothing."""


def list_left_out(texts: Iterable[str], quotes: Sequence[str]) -> tuple[str, ...]:
    """List the sentences that no quote covers, in order, with whitespace collapsed to single spaces.

    A sentence is left out if any of its numbers is in no quote, or, without numbers, if too few of its words are in quotes: two
    must be, or one if it has fewer than four. Each
    quote covers one place: if its words occur more than once, the first place that no earlier quote covers. A repeated
    sentence counts as quoted if any of its occurrences is.

    >>> list_left_out(["It cost $54. It came on May 3, at 5 p.m. today.  Thanks!"], ["cost $54", "Thanks"])
    ('It came on May 3, at 5 p.m. today.',)
    """
    text = _join(texts)
    marks = bytearray(len(text))
    for quote in quotes:
        _mark(text, quote, marks)
    places = list(_iter_sentences(text))
    quoted = {text[start:end] for start, end in places if _is_quoted(text, start, end, marks)}
    return tuple(dict.fromkeys([one for start, end in places if (one := text[start:end]) not in quoted]))


def list_sentences(texts: Iterable[str]) -> list[str]:
    """List the sentences that state something, in order, with whitespace collapsed to single spaces."""
    text = _join(texts)
    return [text[start:end] for start, end in _iter_sentences(text)]


def _join(texts: Iterable[str]) -> str:
    return "\n".join(" ".join(line.split()) for one in texts for line in one.splitlines())


def list_clauses(texts: Iterable[str]) -> tuple[str, ...]:
    """List what a claim may quote, in order: each sentence, and its parts between commas and the like if there are several.

    >>> list_clauses(["High water is at 2 pm, with 3.8 m. Bye!"])
    ('High water is at 2 pm, with 3.8 m.', 'High water is at 2 pm', 'with 3.8 m.', 'Bye!')
    """
    found: list[str] = []
    for text in texts:
        for line in filter(None, (" ".join(line.split()) for line in text.splitlines())):
            for start, end in _iter_sentences(line):
                parts = [part for part in _CLAUSE_END.split(line[start:end]) if _SAYS_SOMETHING.search(part)]
                found += [line[start:end], *(parts if len(parts) > 1 else ())]
    return tuple(dict.fromkeys(found))


def _is_quoted(text: str, start: int, end: int, marks: bytearray) -> bool:
    mark = _LIST_MARK.match(text, start, end)
    begin = start if mark is None else mark.end()
    numbers = [all(marks[one.start() : one.end()]) for one in _NUMBER.finditer(text, begin, end)]
    if numbers:
        return all(numbers)
    words = [all(marks[one.start() : one.end()]) for one in _WORD.finditer(text, begin, end)]
    stated = words or mark is None  # a list mark alone states nothing
    return not stated or sum(words) >= (2 if len(words) > 3 else 1)


def _iter_sentences(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for stop, after in [*[found.span() for found in _END.finditer(text)], (len(text), len(text))]:
        if stop < len(text) and text[stop] != "\n" and _goes_on(text, start, stop):
            continue
        if _SAYS_SOMETHING.search(text, start, stop):
            yield start, stop
        start = after


def _goes_on(text: str, start: int, stop: int) -> bool:
    abbreviated = _SHORT_FOR.search(text, max(start, stop - _LONGEST), stop)
    return abbreviated is not None or _LIST_MARK.fullmatch(text, start, stop) is not None


def _mark(text: str, quote: str, marks: bytearray) -> None:
    """Mark the place that a quote covers; line breaks count as spaces."""
    flat = text.replace("\n", " ")
    for needle in dict.fromkeys(_iter_forms(quote)):
        at = flat.find(needle) if needle else -1
        while at >= 0 and all(marks[at : at + len(needle)]):
            at = flat.find(needle, at + 1)
        if at >= 0:
            marks[at : at + len(needle)] = b"\1" * len(needle)
            return


def _iter_forms(quote: str) -> Iterator[str]:
    """Yield a quote as it is and, in case it was copied from the JSON that was shown, with its escapes decoded."""
    for form in (quote.strip(), quote.strip().strip('"')):
        yield " ".join(form.split())
        try:
            read = json.loads(f'"{form}"')
        except ValueError:
            continue
        yield " ".join(str(read).split())

"""Cut a value that is too long to be shown: what shares words and numbers with the text in question stays first.

A list within it that loses items is shown as an object by index, so that the pointers to the others stay the same.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from pydantic import JsonValue

from service.core.judging.prompts import render_plain

NOTE_CHARS = 48
"""Room for a note on what is left out, in characters of JSON."""
SHARE_CHARS = 200
"""Characters that each chosen part of an object or list gets before any gets more."""
PASSAGE_CHARS = 160
"""The longest passage of a text that stays or goes as a whole."""

Terms = frozenset[str]

_NUMBER = re.compile("[0-9][0-9.,]*")
_WORD = re.compile(r"[^\W\d_]{3,}")
_PLAIN_WORD = re.compile("[a-z]{3,}")
_UNSPACED = re.compile("(?=([\u2e80-\U0003ffff]{2}))")
"""Any two characters of a script without spaces between words."""
_NOTE = re.compile(r"\[left out: [0-9]+ (?:characters|items|keys)\]")


def find_terms(text: str) -> Terms:
    """Return the words and numbers of a text in a form that can be compared: of a number, the significant digits.

    >>> sorted(find_terms("Refunded $5,400.00")), sorted(find_terms('{"amount_cents": 540000}'))
    (['54', 'refunded'], ['54', 'amount', 'cents'])
    """
    folded = text.casefold()
    numbers = [number.replace(".", "").replace(",", "").strip("0") for number in {*_NUMBER.findall(folded)}]
    if folded.isascii():
        return frozenset([*_PLAIN_WORD.findall(folded), *numbers])
    return frozenset([*_WORD.findall(folded), *numbers, *_UNSPACED.findall(folded)])


def is_note(value: JsonValue) -> bool:
    """Whether a value in an excerpt only says what is left out."""
    return isinstance(value, str) and _NOTE.fullmatch(value) is not None


def has_note(value: JsonValue) -> bool:
    """Whether an excerpt lacks anything of this value."""
    return "[left out" in render_plain(value)


class PromptExcerpt(NamedTuple):
    """What is shown of a value, and how many characters of its JSON are left out."""

    value: JsonValue
    cut: int


def cut_value(value: JsonValue, limit: int, about: Callable[[], Iterable[str]] = tuple) -> PromptExcerpt:
    """Return what is shown of a value, in at most `limit` characters of JSON (at least 200).

    `about` gives the texts in question.
    """
    size = len(render_plain(value))
    if size <= limit:
        return PromptExcerpt(value, 0)
    kept = _fit(value, limit, find_terms("\n".join(about())))
    if isinstance(value, list) and isinstance(kept, dict):  # events and texts, which say themselves where they are from
        kept = list(kept.values())
    return PromptExcerpt(kept, max(1, size - len(render_plain(kept))))


def _fit(value: JsonValue, limit: int, wanted: Terms) -> JsonValue:
    text = render_plain(value)
    if len(text) <= limit:
        return value
    note = f"[left out: {len(text)} characters]"
    if isinstance(value, str):
        return _fit_text(value, limit, wanted) or note
    if not isinstance(value, list | dict):
        return note
    inside = value if isinstance(value, dict) else {str(n): item for n, item in enumerate(value)}
    shares = _share_out(inside, limit, wanted)
    if not shares:
        return note
    kept = {key: _fit(item, shares[key], wanted) for key, item in inside.items() if key in shares}
    gone = len(inside) - len(kept)
    if not gone:
        return kept if isinstance(value, dict) else list(kept.values())
    return {**kept, "[left out]": f"[left out: {gone} {'keys' if isinstance(value, dict) else 'items'}]"}


class _Part(NamedTuple):
    """A part of an object or list: its key or index, how well it bears on the text in question, and its JSON's length."""

    key: str
    score: float
    size: int


def _share_out(inside: Mapping[str, JsonValue], limit: int, wanted: Terms) -> Mapping[str, int]:
    """Choose what is shown of an object or list, and give each chosen part its number of characters.

    What holds rare wanted terms is chosen first, then what is near the beginning or the end. What holds wanted terms also gets
    what is left before the others.
    """
    scores = _score([f"{key} {json.dumps(item, ensure_ascii=False)}" for key, item in inside.items()], wanted)
    sizes = [len(render_plain(item)) for item in inside.values()]
    parts = [_Part(*each) for each in zip(inside, scores, sizes, strict=True)]
    room = limit - NOTE_CHARS
    shares: dict[str, int] = {}
    chosen: list[_Part] = []
    for n in _rank(scores):
        share = min(sizes[n], SHARE_CHARS, max(NOTE_CHARS, room // 2))
        cost = len(render_plain(parts[n].key)) + 4 + share
        if cost <= room:
            room, shares[parts[n].key] = room - cost, share
            chosen.append(parts[n])
    for is_wanted in (True, False):
        group = sorted([one for one in chosen if (one.score > 0) is is_wanted], key=lambda one: one.size)
        for n, (key, _, size) in enumerate(group):
            more = min(size - shares[key], room // (len(group) - n))
            room, shares[key] = room - more, shares[key] + more
    return shares


def _score(texts: Sequence[str], wanted: Terms) -> list[float]:
    """Score texts by the wanted terms in them; the rarer a term among the texts, the more it counts."""
    if not wanted:
        return [0.0] * len(texts)
    found = [find_terms(text) & wanted for text in texts]
    counts = Counter([term for terms in found for term in terms])
    return [fsum([1 / counts[term] for term in terms]) for terms in found]


def _rank(scores: Sequence[float]) -> list[int]:
    """Return the indices: the highest score first, and of equal ones what is nearest to either end."""
    return sorted(range(len(scores)), key=lambda n: (-scores[n], min(n, len(scores) - 1 - n), n))


def _fit_text(text: str, limit: int, wanted: Terms) -> str:
    """Return the passages of a text that fit, in their order, each gap noted; empty if none fits."""
    longest = max(1, min(PASSAGE_CHARS, limit // 8))
    passages = re.findall(rf"(?s).{{1,{longest}}}(?:\s|\Z)|.{{1,{longest}}}", text)
    own = _score(passages, wanted)
    near = zip([0.0, *own], own, [*own[1:], 0.0], strict=False)
    room = limit - 2 - NOTE_CHARS
    chosen: set[int] = set()
    for n in _rank([before / 4 + score + after / 4 for before, score, after in near]):
        cost = len(render_plain(passages[n])) - 2 + (0 if chosen & {n - 1, n + 1} else NOTE_CHARS)
        if cost <= room:
            room -= cost
            chosen.add(n)
    return "".join(_join(passages, chosen)) if chosen else ""


def _join(passages: Sequence[str], chosen: Collection[int]) -> Iterator[str]:
    gone = 0
    for n, passage in enumerate([*passages, ""]):
        if n == len(passages) or n in chosen:
            if gone:
                yield f"[left out: {gone} characters]"
            yield passage
            gone = 0
        else:
            gone += len(passage)

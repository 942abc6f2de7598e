"""What the model could know when it made a call: the texts and results before it, in an index."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import Literal, NamedTuple

from pydantic import JsonValue

from service.core.budget import Meter
from service.core.evidence.reading import dates
from service.core.evidence.reading.quantities import Quantity, Value, find_quantities
from service.core.evidence.reading.words import flatten_text, split_tokens
from service.core.json.leaves import Leaf, Scalar, list_leaves
from service.core.json.pointers import escape_token
from service.core.results.structure import build_passage_pointer, read_text
from service.core.trace import Step, Trace

Origin = Literal["user", "result", "system"]

MAX_CHARACTERS = 500_000
"""Of all texts and results together that are read."""
MAX_KEYS = 2_000
"""Names in one result that are read as values."""
MAX_CANDIDATES = 64
"""Places that are searched for one text."""

_COST_OF_SAID = 16
"""Looks that one at what somebody said counts as."""
_COST_OF_SPELLING = 3
"""Looks that one at the letters of a text counts as."""

_ORDER: dict[Origin, int] = {"user": 0, "result": 1, "system": 2}
_NOW = ("current date", "current time", "current day", "today", "now", "date is", "time is")
_NOW_KEYS = frozenset({"currentdate", "currenttime", "currentdatetime", "now", "today"})


class SourcePlace(NamedTuple):
    """Something said or returned: by whom, in which message, where in the trace."""

    origin: Origin
    message: int
    pointer: str
    keys: tuple[str, ...]
    text: str
    """Flat: its words alone."""
    turn: int


class Mention(NamedTuple):
    """A quantity at a place."""

    quantity: Quantity
    place: SourcePlace


class SourceIndex:
    """The texts of user and system and the results of a trace, indexed by words and by quantities."""

    def __init__(self, trace: Trace, meter: Meter | None = None) -> None:
        """`meter`: that of the item; what is searched without an index is counted there."""
        self.read = 0
        self._meter = meter or Meter()
        self._words_of: dict[str, frozenset[str]] = {}
        self.reference = find_reference_date(trace)
        self._words: dict[str, list[SourcePlace]] = defaultdict(list)
        self._mentions: dict[Value, list[Mention]] = defaultdict(list)
        self._places: list[SourcePlace] = []
        self.said: list[Mention] = []
        """The quantities of the user's and the system's texts, in order."""
        self._spent = [(step.message, day) for step in trace.steps for day in _iter_days(step)]
        for place, text in sorted(_iter_places(trace), key=lambda found: found[0].message):
            self._add(place, text)

    @property
    def too_long(self) -> bool:
        """Whether not all of the trace was read."""
        return self.read > MAX_CHARACTERS

    def _add(self, place: SourcePlace, text: str) -> None:
        self.read += len(text) + 8
        if self.too_long:
            return
        place = place._replace(text=flatten_text(text))
        self._places.append(place)
        for word in set(place.text.split()):
            self._words[word].append(place)
        for quantity in _find_quantities(text, self.reference):
            mention = Mention(quantity, place)
            for value in set(quantity.values):
                self._mentions[value].append(mention)
            if place.origin != "result":
                self.said.append(mention)

    def find(self, text: str, before: int) -> SourcePlace | None:
        """Where these words stand together before a message: in the user's texts first, then results, then the system's."""
        wanted = flatten_text(text)
        words = wanted.split()
        if not words:
            return None
        rarest = min((self._words.get(word, []) for word in words), key=len)
        visible = [place for place in rarest if place.message < before]
        found = [place for place in visible[-MAX_CANDIDATES:] if wanted in place.text]
        return min(found, key=lambda place: (_ORDER[place.origin], -place.message), default=None)

    def find_compact(self, letters: str, before: int) -> SourcePlace | None:
        """Where these letters and digits stand, however spaced; shorter ones than six prove nothing."""
        if len(letters) < 6:
            return None
        for n, place in enumerate(self._places):
            if place.message < before and _is_spelt(letters, place.text):
                self._meter.spend("looks", _COST_OF_SPELLING * n)
                return place
        self._meter.spend("looks", _COST_OF_SPELLING * len(self._places))
        return None

    def find_mentions(self, value: Value, before: int) -> list[Mention]:
        """The quantities of this value in the messages before the given one, the best source first."""
        found = [mention for mention in self._mentions.get(value, ()) if mention.place.message < before]
        return sorted(found, key=lambda mention: (_ORDER[mention.place.origin], -mention.place.message))

    def iter_numbers(self, before: int) -> Iterator[Decimal]:
        """The distinct numbers before a message."""
        self._meter.spend("looks", len(self._mentions))
        for value, found in self._mentions.items():
            if isinstance(value, Decimal) and found[0].place.message < before:  # they are kept in order
                yield value

    def list_said_before(self, before: int, origin: Origin = "user") -> list[Mention]:
        """The quantities that a speaker's texts hold before a message."""
        self._meter.spend("looks", _COST_OF_SAID * len(self.said))
        return [m for m in self.said if m.place.origin == origin and m.place.message < before]

    def is_spent(self, days: Iterable[Value], before: int) -> bool:
        """Whether an earlier call has one of these days among its arguments: the user may have named it for that call."""
        self._meter.spend("looks", len(self._spent))
        known = {str(day)[-5:] for day in days}
        return any(message < before and day[-5:] in known for message, day in self._spent)

    def iter_user_texts(self, before: int) -> Iterator[SourcePlace]:
        """The user's texts before a message."""
        self._meter.spend("looks", len(self._places))
        return (place for place in self._places if place.origin == "user" and place.message < before)

    def list_words(self, place: SourcePlace) -> frozenset[str]:
        """The words of a text."""
        if place.pointer not in self._words_of:
            self._words_of[place.pointer] = frozenset(place.text.split())
        return self._words_of[place.pointer]

    def list_dates(self, before: int) -> list[Mention]:
        """The dates that results hold before a message."""
        self._meter.spend("looks", len(self._mentions))
        return [
            mention
            for value, found in self._mentions.items()
            for mention in found
            if mention.quantity.kind == "date" and isinstance(value, str) and mention.place.message < before
        ]


def _is_spelt(letters: str, text: str) -> bool:
    """Whether some whole words of a flat text, put together, are these letters."""
    if letters not in text.replace(" ", ""):
        return False
    words = text.split()
    for n, word in enumerate(words):
        joined = word
        for other in words[n + 1 : n + len(letters)]:
            if joined == letters or not letters.startswith(joined):
                break
            joined += other
        if joined == letters:
            return True
    return False


def _iter_places(trace: Trace) -> Iterator[tuple[SourcePlace, str]]:
    for n, message in enumerate(trace.messages):
        if message.role != "assistant" and message.text:
            yield SourcePlace(message.role, n, f"/messages/{n}/text", (), "", message.turn), message.text
    for step in trace.steps:
        if step.result is None:
            continue
        # What a call returned is known to the messages after the one that made it.
        for leaf in list_leaves(step.result.content, f"/steps/{step.index}/result/content"):
            if leaf.value is not None:
                yield (
                    SourcePlace("result", step.message, leaf.pointer, leaf.keys, "", step.turn),
                    _render_text(leaf.value),
                )
            for inner in _list_quoted(leaf):
                place = SourcePlace("result", step.message, inner.pointer, inner.keys, "", step.turn)
                yield place, _render_text(inner.value)
        yield from _iter_keys(step.result.content, step.message, step.turn, f"/steps/{step.index}/result/content")


def _list_quoted(leaf: Leaf) -> list[Leaf]:
    r"""What stands in JSON that was quoted as a string: with the quotation, `\nHAT069` is another word."""
    if not isinstance(leaf.value, str) or "\\" not in leaf.value:
        return []
    passages = [passage for passage in read_text(leaf.value).passages if passage.exact]
    found = [list_leaves(one.value, build_passage_pointer(leaf.pointer, one)) for one in passages]
    return [inner for leaves in found for inner in leaves if inner.value is not None]


def _iter_keys(value: JsonValue, message: int, turn: int, pointer: str) -> Iterator[tuple[SourcePlace, str]]:
    """Names in objects are values too: `{"credit_card_4421486": {...}}`."""
    stack: list[tuple[JsonValue, str]] = [(value, pointer)]
    seen = 0
    while stack and seen < MAX_KEYS:
        here, at = stack.pop()
        if isinstance(here, list):
            stack += [(item, f"{at}/{n}") for n, item in enumerate(here) if isinstance(item, dict | list)]
            seen += len(here)
        elif isinstance(here, dict):
            for key, item in here.items():
                seen += 1
                if any(c.isdigit() for c in key):
                    yield SourcePlace("result", message, f"{at}/{escape_token(key)}", (), "", turn), key
                if isinstance(item, dict | list):
                    stack.append((item, f"{at}/{escape_token(key)}"))


def _find_quantities(text: str, reference: date | None) -> list[Quantity]:
    if text.isdecimal() and len(text) < 20:  # most leaves are short numbers
        return [Quantity("number", Decimal(text), "", 0, len(text), text)]
    return find_quantities(text, reference)


def _iter_days(step: Step) -> Iterator[str]:
    arguments = step.call.arguments
    for leaf in list_leaves(dict(arguments), limit=50) if arguments else ():
        if isinstance(leaf.value, str) and re.match(dates.ISO, leaf.value):
            yield leaf.value[:10]


def _render_text(value: Scalar) -> str:
    return value if isinstance(value, str) else repr(value)


def find_reference_date(trace: Trace) -> date | None:
    """The date that the trace gives as its own: `The current time is 2024-05-15 15:00`, or a result's `current_date`.

    None where it gives none or two.
    """
    found = {_read_full_date(day) for day in _iter_stated_dates(trace)} - {None}
    return found.pop() if len(found) == 1 else None


def _iter_stated_dates(trace: Trace) -> Iterator[str]:
    for message in trace.messages:
        if message.role != "assistant":
            for quantity in find_quantities(message.text):
                if quantity.kind == "date" and _says_now(message.text[max(0, quantity.start - 40) : quantity.start]):
                    yield str(quantity.value)
    for step in trace.steps:
        if step.result is not None:
            for leaf in list_leaves(step.result.content, limit=50):
                if "".join(split_tokens(leaf.key)) in _NOW_KEYS and isinstance(leaf.value, str):
                    yield from (str(q.value) for q in find_quantities(leaf.value) if q.kind == "date")


def _says_now(before: str) -> bool:
    words = flatten_text(before.rsplit(". ", 1)[-1])
    return any(f" {word} " in words for word in _NOW)


def _read_full_date(day: str) -> date | None:
    return None if day.startswith("--") else date.fromisoformat(day)

"""Index what the model could know when it made a call: the texts and results before it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from service.core.evidence.provenance.clock import find_reference_date
from service.core.evidence.provenance.places import Origin, SourcePlace, iter_own_places, iter_places, list_gaps
from service.core.evidence.provenance.spelling import SpeltIndex
from service.core.evidence.reading import dates
from service.core.evidence.reading.quantities import Quantity, Value, find_quantities
from service.core.evidence.reading.words import flatten_text, split_tokens, stem_name
from service.core.json.leaves import list_leaves
from service.core.models.lazy import lazy
from service.core.trace import Step, Trace
from service.core.work_limits import Meter

MAX_CHARACTERS = 500_000
"""Most characters of texts and results, taken together, that are read."""
MAX_CANDIDATES = 64
"""Most places that are searched for one text: the latest ones."""

_COST_OF_SAID = 16
"""Looks charged for scanning one quantity that somebody said."""
_COST_OF_SPELLING = 3
"""Looks charged for scanning the letters of one text."""

_ORDER: dict[Origin, int] = {"user": 0, "result": 1, "system": 2}
"""Which source is preferred: the lowest."""


class Mention(NamedTuple):
    """A quantity at a place."""

    quantity: Quantity
    place: SourcePlace


class SourceIndex:
    """The texts of user and system and the results of a trace, indexed by words and by quantities."""

    def __init__(self, trace: Trace, meter: Meter | None = None) -> None:
        """`meter`: the item's; it is charged for every search without an index."""
        self.read = 0
        self._meter = meter or Meter()
        self._words_of: dict[str, frozenset[str]] = {}
        self._user_texts: dict[str, tuple[str, list[Quantity]]] = {}
        self.reference = find_reference_date(trace)
        self._words: dict[str, list[SourcePlace]] = defaultdict(list)
        self._mentions: dict[Value, list[Mention]] = defaultdict(list)
        self._places: list[SourcePlace] = []
        self.said: list[Mention] = []
        """The quantities of the user's and the system's texts, in order."""
        self.percents: list[Mention] = []
        """The percentages in texts and results, in order."""
        self._spent = [(step.message, day) for step in trace.steps for day in _iter_days(step)]
        self._trace = trace
        for place, text in sorted(iter_places(trace), key=lambda found: found[0].message):
            self._add(place, text)

    @property
    def too_long(self) -> bool:
        """Whether the trace was too long to read in full."""
        return self.read > MAX_CHARACTERS

    def _add(self, place: SourcePlace, text: str) -> None:
        self.read += len(text) + 8
        if self.too_long:
            return
        place = place._replace(text=flatten_text(text))
        self._places.append(place)
        for word in set(place.text.split()):
            self._words[word].append(place)
        quantities = _find_quantities(text, self.reference)
        if place.origin == "user":
            self._user_texts[place.pointer] = text, quantities
        for quantity in quantities:
            mention = Mention(quantity, place)
            for value in set(quantity.values):
                self._mentions[value].append(mention)
            if quantity.kind == "percent":
                self.percents.append(mention)
            if place.origin != "result":
                self.said.append(mention)

    def find(self, text: str, before: int) -> SourcePlace | None:
        """Find these words together before a message: in the user's texts first, then in results, then in the system's."""
        flat = flatten_text(text)
        words = flat.split()
        if not words:
            return None
        rarest = min((self._words.get(word, []) for word in words), key=len)
        visible = [place for place in rarest if place.message < before]
        found = [place for place in visible[-MAX_CANDIDATES:] if flat in place.text]
        return min(found, key=lambda place: (_ORDER[place.origin], -place.message), default=None)

    @lazy
    def spelt(self) -> SpeltIndex:
        """What was said and returned, spelt as it would be typed."""
        return SpeltIndex(self._places)

    @lazy
    def own(self) -> SpeltIndex:
        """The assistant's texts and calls and the tools offered, spelt as they would be typed."""
        return SpeltIndex(list(iter_own_places(self._trace)))

    @lazy
    def _gaps(self) -> list[tuple[int, str]]:
        return list_gaps(self._trace)

    def find_gap(self, before: int) -> str | None:
        """Find a place before a message that the model could read and code cannot."""
        return next((path for message, path in self._gaps if message < before), None)

    def find_spelt(self, index: SpeltIndex, value: str, before: int) -> SourcePlace | None:
        """Find whole words before a message that make up this value when joined."""
        self._meter.spend("looks", _COST_OF_SPELLING * index.size)
        return index.find(value, before)

    def find_mentions(self, value: Value, before: int) -> list[Mention]:
        """Return the quantities of this value before a message, the best source first."""
        found = [mention for mention in self._mentions.get(value, ()) if mention.place.message < before]
        return sorted(found, key=lambda mention: (_ORDER[mention.place.origin], -mention.place.message))

    def iter_numbers(self, before: int) -> Iterator[Decimal]:
        """Yield the distinct numbers before a message."""
        self._meter.spend("looks", len(self._mentions))
        for value, found in self._mentions.items():
            if isinstance(value, Decimal) and found[0].place.message < before:  # mentions are in order
                yield value

    def list_said_before(self, before: int, origin: Origin = "user") -> list[Mention]:
        """List the quantities in a speaker's texts before a message."""
        self._meter.spend("looks", _COST_OF_SAID * len(self.said))
        return [m for m in self.said if m.place.origin == origin and m.place.message < before]

    def is_spent(self, days: Iterable[Value], before: int) -> bool:
        """Whether an earlier call passed one of these days: the user may have named it for that call."""
        self._meter.spend("looks", len(self._spent))
        known = {str(day)[-5:] for day in days}
        return any(message < before and day[-5:] in known for message, day in self._spent)

    def iter_user_texts(self, before: int) -> Iterator[SourcePlace]:
        """Yield the user's texts before a message."""
        self._meter.spend("looks", len(self._places))
        return (place for place in self._places if place.origin == "user" and place.message < before)

    @lazy
    def system_words(self) -> frozenset[str]:
        """The words of the system's texts."""
        return self._list_words_of("system")

    @lazy
    def user_words(self) -> frozenset[str]:
        """The words of the user's texts."""
        return self._list_words_of("user")

    def _list_words_of(self, origin: Origin) -> frozenset[str]:
        return frozenset(word for place in self._places if place.origin == origin for word in place.text.split())

    def list_words_beside_dates(self, place: SourcePlace) -> frozenset[str]:
        """Return the words of a user's text without those that are part of a date, like `next` in `next Friday`."""
        if place.pointer not in self._words_of:
            text, quantities = self._user_texts[place.pointer]
            cuts = [0, *[at for q in quantities if q.kind == "date" for at in (q.start, q.end)], len(text)]
            rest = " ".join([text[start:end] for start, end in zip(cuts[::2], cuts[1::2], strict=True)])
            self._words_of[place.pointer] = frozenset(split_tokens(rest))
        return self._words_of[place.pointer]

    @lazy
    def _fields(self) -> dict[tuple[str, ...], list[SourcePlace]]:
        found: defaultdict[tuple[str, ...], list[SourcePlace]] = defaultdict(list)
        for place in self._places:
            if place.keys and place.text.strip():
                found[stem_name(place.keys[-1])].append(place)
        return found

    def find_field(self, name: str, before: int) -> SourcePlace | None:
        """Find the last value that results give under a name before a message."""
        found = self._fields.get(stem_name(name), [])
        return next((place for place in reversed(found) if place.message < before), None)

    def list_yearless_dates(self, before: int) -> list[Mention]:
        """List the dates without a year in texts and results before a message."""
        self._meter.spend("looks", len(self._mentions))
        return [
            mention
            for value, found in self._mentions.items()
            for mention in found
            if isinstance(value, str) and value.startswith("--") and mention.place.message < before
        ]


def _find_quantities(text: str, reference: date | None) -> list[Quantity]:
    if text.isdecimal() and len(text) < 20:  # most leaves are short numbers
        return [Quantity("number", Decimal(text), "", 0, len(text), text)]
    return find_quantities(text, reference)


def _iter_days(step: Step) -> Iterator[str]:
    arguments = step.call.arguments
    for leaf in list_leaves(dict(arguments), limit=50) if arguments else ():
        if isinstance(leaf.value, str) and re.match(dates.ISO, leaf.value):
            yield leaf.value[:10]

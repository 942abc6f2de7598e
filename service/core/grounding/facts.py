"""Read what a trace holds: a value of a result, an argument or a text as facts, with its pointer, its field and its unit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import Literal, NamedTuple

from service.core.grounding.fields import Beside, apply_unit, read_field, split_name
from service.core.grounding.reading.languages import split_words
from service.core.grounding.reading.mentions import Mention, Reading, normalize_code
from service.core.grounding.reading.moments import Day, list_instants, list_weekdays, read_epoch, read_iso_day
from service.core.grounding.reading.values import find_values
from service.core.json.pointers import escape_token

MAX_NAME_CHARS = 80
"""Longer texts are prose, not names."""
MAX_NAME_WORDS = 6

Source = Literal["result", "user", "system", "agent", "argument", "description", "assistant", "error"]
"""Who wrote what holds a value."""


class Site(NamedTuple):
    """Where something stands: its pointer, the name of its field, and the pointer of the object that has the field."""

    pointer: str
    source: Source
    name: str = ""
    record: str = ""
    beside: Beside = Beside()
    """What the other members of that object say of its numbers."""
    minor_told: bool = False
    """Whether the tool's description says that amounts are in cents or the like."""

    def enter(self, key: str | int | None) -> Site:
        """Return the site of a member of an object or a list; with None, of the value itself."""
        if key is None:
            return self
        pointer, source, name, record, beside, told = self
        if isinstance(key, int):
            return Site(f"{pointer}/{key}", source, name, record, beside, told)
        return Site(f"{pointer}/{escape_token(key)}", source, key, record, beside, told)


class Fact(NamedTuple):
    """A value that the trace holds; `text` is how it stands there."""

    reading: Reading
    place: Site
    text: str
    minor: bool = False
    """Whether it counts cents or the like."""
    whole: bool = True
    """Whether it is the whole of its field, not a part of a longer text."""

    @property
    def pointer(self) -> str:
        """Where it stands."""
        return self.place.pointer

    @property
    def source(self) -> Source:
        """Who wrote it."""
        return self.place.source

    @property
    def name(self) -> str:
        """The name of its field."""
        return self.place.name


class Part(NamedTuple):
    """One way to read a text or a piece of it; `whole` as of a fact."""

    reading: Reading
    text: str
    whole: bool


_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"[^\W_]+")
_VERSION = re.compile(r"v?(\d{1,3}\.\d{1,3})\.\d")
PLAIN_NUMBER = re.compile(r"\s*(-?(?!0\d)\d{1,15}(?:\.\d{1,12})?)\s*")
_CODE = re.compile(r"(?!P\d|PT)[A-Za-z][\w.:/@#+-]*")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d{1,9})?(Z|[+-]\d{2}:?\d{2})?)?")
_EPOCH_WORDS = split_words(
    "ts at time timestamp date created updated expires expiry since until epoch unix due start end begin modified when"
)
FIRST_EPOCH_S = 500_000_000


@lru_cache(maxsize=16_384)
def split_plain(text: str) -> tuple[str, ...]:
    """Return the words of a text, without case and accents.

    >>> split_plain("IN_TRANSIT"), split_plain("Müller, José")
    (('in', 'transit'), ('muller', 'jose'))
    """
    if text.isascii():
        return tuple(_WORD.findall(text.lower()))
    folded = unicodedata.normalize("NFKD", text.casefold())
    return tuple(_WORD.findall("".join([c for c in folded if not unicodedata.combining(c)])))


def has_digit(text: str) -> bool:
    """Whether a text has a digit."""
    return _DIGIT.search(text) is not None


def read_number(value: float, text: str, site: Site) -> Iterator[Fact]:
    """Yield the facts that a number of a field may be: an amount in the field's unit, a code, a moment since 1970."""
    field = read_field(site.name, site.beside, minor_told=site.minor_told and value == value // 1)
    dimension, size = apply_unit(field.unit, value)
    currency = field.unit.currency if field.unit is not None else ""
    if dimension:
        yield Fact(Reading("number", size, dimension, 0.0, currency, value), site, text, field.minor)
    else:
        yield Fact(Reading("number", value), site, text)
    digits = text.partition(".")[0]
    if value >= 100 and value == value // 1 and digits.isdecimal():
        yield Fact(Reading("code", digits), site, text)
    if value >= FIRST_EPOCH_S and _EPOCH_WORDS & set(split_name(site.name)):
        for part in read_epoch(value) or ():
            yield Fact(Reading("day" if isinstance(part, Day) else "time", part), site, text)


@lru_cache(maxsize=8_192)  # results repeat their texts, and so do traces
def _read_short(text: str, today: date | None) -> Sequence[Part]:
    return _read(text, today)


def read_parts(text: str, today: date | None) -> Sequence[Part]:
    """Return how a text may be read whatever its field: as a code, a moment, or by the values of its words."""
    if len(text) <= MAX_NAME_CHARS:
        return _read_short(text, today)
    return _read(text, today) if has_digit(text) else ()


def _read(text: str, today: date | None) -> Sequence[Part]:
    parts = [Part(Reading("code", code), text, n == 0) for n, code in enumerate(list_codes(text))]
    bare = text.strip()
    if not has_digit(bare) or _CODE.fullmatch(bare) or PLAIN_NUMBER.fullmatch(bare):
        return parts
    moment = _MOMENT.fullmatch(bare)
    day = read_iso_day(moment[1]) if moment is not None else None
    if moment is not None and day is not None:
        parts.append(Part(Reading("day", day), bare, True))
        for local, time in list_instants(day, moment[2], moment[3] or "") if moment[2] else ():
            parts += [Part(Reading("day", local), bare, True), Part(Reading("time", time), bare, True)]
        return parts
    version = _VERSION.match(bare)
    if version is not None:  # its first parts are a version, too
        parts.append(Part(Reading("number", float(version[1])), version[1], False))
    found = [(reading, one.text) for one in find_values(bare, today) for reading in list_readings(one, today)]
    return parts + [Part(reading, piece, len(piece) == len(bare)) for reading, piece in found]


def list_readings(mention: Mention, today: date | None) -> tuple[Reading, ...]:
    """Return the ways in which a text may be read that holds a value: a weekday as the days next to today, too."""
    days = list_weekdays(mention.readings[0].number, today) if mention.kind == "weekday" else ()
    return (*mention.readings, *[Reading("day", day) for day in days])


def is_code(text: str) -> bool:
    """Whether a short text is looked up as a code: it has a digit, or is an address."""
    return has_digit(text) or "@" in text or "://" in text


def list_codes(text: str) -> Sequence[str]:
    """Return a short text as a code, and its parts that have letters and digits."""
    if len(text) > MAX_NAME_CHARS or not is_code(text):
        return ()
    words = split_plain(text)
    if not 0 < len(words) <= MAX_NAME_WORDS:
        return ()
    mixed = [word for word in words if words[1:] and word[1:] and has_digit(word) and not word.isdecimal()]
    return [normalize_code(text), *mixed]


@lru_cache(maxsize=16_384)
def list_names(text: str) -> Sequence[tuple[str, ...]]:
    """Return the words by which a short text may be named; of `Last, First`, in the other order too; none of any other text."""
    words = split_plain(text) if len(text) <= MAX_NAME_CHARS else ()
    if not 0 < len(words) <= MAX_NAME_WORDS or not any(map(str.isalpha, text)):
        return []
    last, comma, first = text.partition(",")
    return [words, split_plain(f"{first} {last}")] if comma and words[1:] and len(words) <= 3 else [words]

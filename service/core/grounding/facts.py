"""Read what a trace holds: a value of a result, an argument or a text as facts, with its pointer, its field and its unit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from service.core.grounding.fields import Beside, apply_unit, read_field, split_name
from service.core.grounding.reading.languages import list_words
from service.core.grounding.reading.mentions import Reading, has_digit, normalize_code
from service.core.grounding.reading.moments import list_instants, read_epoch, read_iso_day
from service.core.grounding.reading.values import find_values
from service.core.json.pointers import escape_token

MAX_NAME_CHARS = 80
"""Longer texts are prose, not names."""
MAX_NAME_WORDS = 6

Source = Literal["result", "user", "system", "agent", "argument", "description", "assistant", "error"]
"""Who wrote what holds a value."""


Key = str | int | None
"""A key or position in what holds a value; None where it is the value itself."""


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

    def enter(self, key: Key) -> Site:
        """Return the site of a member of an object or a list; with None, of the value itself."""
        pointer, source, name, record, beside, told = self
        name = key if isinstance(key, str) else name
        return Site(build_member_pointer(pointer, key), source, name, record, beside, told)


def build_member_pointer(pointer: str, key: Key) -> str:
    """Return the pointer of a member of what stands at a pointer."""
    if key is None:
        return pointer
    return f"{pointer}/{escape_token(key)}" if isinstance(key, str) else f"{pointer}/{key}"


class Part(NamedTuple):
    """One way to read a value or a piece of it; `text` is how it stands there."""

    reading: Reading
    text: str
    minor: bool = False
    """Whether it counts cents or the like."""
    whole: bool = True
    """Whether it is the whole of its field, not a part of a longer text."""


class Fact(NamedTuple):
    """A value that the trace holds, in one of the ways to read it: a member of what holds it."""

    reading: Reading
    text: str
    minor: bool
    whole: bool
    site: Site
    key: Key
    how: str = "same"
    """How it says what was looked for: `same`, `rounded`, `unit`, `minor units`, `part`."""

    @property
    def pointer(self) -> str:
        """Where it stands."""
        return build_member_pointer(self.site.pointer, self.key)

    @property
    def source(self) -> Source:
        """Who wrote it."""
        return self.site.source

    @property
    def name(self) -> str:
        """The name of its field."""
        return self.key if isinstance(self.key, str) else self.site.name


_WORD = re.compile(r"[^\W_]+")
_VERSION = re.compile(r"v?(\d{1,3}\.\d{1,3})\.\d")
PLAIN_NUMBER = re.compile(r"\s*(-?(?!0\d)\d{1,15}(?:\.\d{1,12})?)\s*")
_CODE = re.compile(r"(?!P\d|PT)[A-Za-z][\w.:/@#+-]*")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d{1,9})?(Z|[+-]\d{2}:?\d{2})?)?")
_EPOCH_WORDS = list_words("fields", "moments")
FIRST_EPOCH_S = 500_000_000


@lru_cache(maxsize=16_384)
def split_plain(text: str) -> tuple[str, ...]:
    """Return the words of a text, without case and accents."""
    if text.isascii():
        return tuple(_WORD.findall(text.lower()))
    folded = unicodedata.normalize("NFKD", text.casefold())
    return tuple(_WORD.findall("".join([c for c in folded if not unicodedata.combining(c)])))


def read_number(value: float, text: str, name: str, beside: Beside, *, told: bool) -> list[Part]:
    """List what a number of a field may be: an amount in the field's unit, a code, a moment since 1970."""
    measured = read_field(name, beside, minor_told=told and value == value // 1)
    dimension, size = apply_unit(measured.unit, value)
    if dimension and measured.unit is not None:
        reading = Reading("number", size, dimension, 0.0, measured.unit.currency, value)
        found = [Part(reading, text, measured.minor)]
    else:
        found = [Part(Reading("number", value), text)]
    digits = text.partition(".")[0]
    if value >= 100 and value == value // 1 and digits.isdecimal():
        found.append(Part(Reading("code", digits), text))
    moment = read_epoch(value) if value >= FIRST_EPOCH_S and _EPOCH_WORDS & set(split_name(name)) else None
    if moment is not None:
        found += [Part(Reading("day", moment[0]), text), Part(Reading("time", moment[1]), text)]
    return found


def read_parts(text: str) -> Sequence[Part]:
    """Return how a text may be read whatever its field: as a code, a moment, or by the values of its words."""
    return _read_short(text) if len(text) <= MAX_NAME_CHARS else _read(text)


def _read(text: str) -> Sequence[Part]:
    parts = [Part(Reading("code", code), text, whole=n == 0) for n, code in enumerate(list_codes(text))]
    bare = text.strip()
    if not has_digit(bare) or _CODE.fullmatch(bare) or PLAIN_NUMBER.fullmatch(bare):
        return parts
    moment = _MOMENT.fullmatch(bare)
    day = read_iso_day(moment[1]) if moment is not None else None
    if moment is not None and day is not None:
        instants = [*list_instants(day, moment[2], moment[3] or "")] if moment[2] else []
        days = dict.fromkeys([day, *[local for local, _ in instants]])
        readings = [*[Reading("day", one) for one in days], *[Reading("time", time) for _, time in instants]]
        return parts + [Part(reading, bare) for reading in readings]
    version = _VERSION.match(bare)
    if version is not None:  # its first parts are a version, too
        parts.append(Part(Reading("number", float(version[1])), version[1], whole=False))
    found = [(reading, one.text) for one in find_values(bare) for reading in one.readings]
    return parts + [Part(reading, piece, whole=len(piece) == len(bare)) for reading, piece in found]


_read_short = lru_cache(maxsize=8_192)(_read)  # results repeat their texts, and so do traces


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

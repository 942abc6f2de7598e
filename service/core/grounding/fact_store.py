"""What a trace holds, taken in cheaply: each value with keys to find it by. What it may say is read when a text asks for it."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from itertools import islice
from typing import Literal, cast

from pydantic import JsonValue

from service.core.grounding.facts import (
    CODE,
    MAX_DEPTH,
    MAX_NAME_CHARS,
    Fact,
    Site,
    Source,
    build_holder,
    build_site,
    has_digit,
    is_code,
    list_codes,
    list_names,
    measure,
    read_code,
    read_number,
    read_string,
    split_plain,
)
from service.core.grounding.fields import tells_minor
from service.core.grounding.reading.mentions import Mention, Reading
from service.core.grounding.reading.moments import Day, Time, list_weekdays
from service.core.grounding.reading.values import find_values
from service.core.results.structure import TextStructure, build_passage_pointer, iter_bodies, read_leaf, read_text
from service.core.trace import Step, ToolDef

MAX_FACTS = 100_000
"""The most values of one trace that are indexed. Beyond it nothing is called `nowhere`."""
MAX_READ_CHARS = 64_000
MAX_NEAR = 64
MAX_NAMED = 4
_LONG_NUMBER = 10_000_000
_FEW_NEW = 64
_WORD = re.compile(r"[^\W_]+")
_DAY = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d)")
"""Days that every month has."""


class Order:
    """Values in order of their size, with the numbers of what holds them."""

    def __init__(self) -> None:
        self._sizes: list[tuple[float, int]] = []
        self.new: list[tuple[float, int]] = []

    def _sort(self) -> list[tuple[float, int]]:
        """Put what is new into its order, few by search and many by sorting."""
        if len(self.new) <= _FEW_NEW:
            for one in self.new:
                insort(self._sizes, one)
        else:
            self._sizes = sorted(self._sizes + self.new)
        self.new.clear()
        return self._sizes

    def list_between(self, low: float, high: float) -> list[int]:
        """Return what holds the values in a range, at most 64."""
        sizes = self._sort()
        at = bisect_left(sizes, (low, -1))
        return [n for size, n in sizes[at : at + MAX_NEAR] if size <= high]

    def list_around(self, size: float, count: int) -> list[int]:
        """Return what holds the values next to a size, so many to each side."""
        sizes = self._sort()
        at = bisect_left(sizes, (size, -1))
        return [n for _, n in sizes[max(0, at - count) : at + count]]


@lru_cache(maxsize=8192)
def _is_value(key: str) -> bool:
    """Whether a key is a value itself: `{"2025-02-10": ...}`."""
    return not key.isalpha() and is_code(key)


class FactStore:
    """The values of a trace up to a point, with keys to find them by."""

    def __init__(self, today: date | None = None) -> None:
        """`today`: what `tomorrow` and `next Friday` count from, in texts that people wrote."""
        self.today = today
        self.tables: list[tuple[str, list[JsonValue]]] = []
        """Every list with its pointer."""
        self.said: list[Fact] = []
        """The numbers in what users wrote."""
        self._held: list[tuple[Site, str | int | None, JsonValue]] = []
        """Every value: the number of a value is its position here."""
        self._built: dict[int, list[Fact]] = {}
        self._places: dict[str, list[int]] = {"number": [], "day": []}
        """What holds numbers, and what holds days."""
        self._sizes: dict[str, Order] = defaultdict(Order)
        """By dimension, the numbers in their base unit."""
        self._written = Order()
        """All numbers as they are without their unit."""
        self._days: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._times: dict[int, list[int]] = defaultdict(list)
        self._codes: dict[str, list[int]] = defaultdict(list)
        self._heads: dict[str, list[int]] = defaultdict(list)
        """Short texts that nobody has asked for, by their first words."""
        self._names: dict[str, dict[tuple[str, ...], list[int]]] = {}
        """Short texts by their words, by the first of these."""
        self._last: dict[str, int] = {}
        """The last value of each field of the results."""
        self._unread: list[tuple[str, Source]] = []
        self._words: dict[bool, set[str]] = {True: set(), False: set()}

    @property
    def full(self) -> bool:
        """Whether not all values could be taken in."""
        return len(self._held) >= MAX_FACTS

    def add_step(self, step: Step, tool: ToolDef | None, source: Source | None = "result") -> str:
        """Add a call's arguments and what it returned, unless `source` is None; return the pointer of its result."""
        pointer, minor = f"/steps/{step.index}", tells_minor(tool)
        given = cast("JsonValue", dict(step.call.arguments or {}))
        self.add_value(given, Site(f"{pointer}/call/arguments", "argument", minor_told=minor))
        if step.result is None:
            return f"{pointer}/result"
        if source is not None:
            self._add_result(step.result.content, Site(f"{pointer}/result/content", source, minor_told=minor))
        return f"{pointer}/result/content"

    def _add_result(self, content: JsonValue, site: Site) -> None:
        """Add what a tool returned; of a text, the structure in it and the values of the words around it."""
        if not isinstance(content, str):
            self.add_value(content, site, {f"{site.pointer}{body.pointer}" for body in iter_bodies(content)})
            return
        structure = read_text(content)
        self._add_passages(structure, site)
        self.add_text(structure.rest, site.pointer, site.source)
        if not structure.passages:
            n = self._hold_text(site, None, content)
            if n is not None:
                self._built[n] = list(read_code(content, site))
                self._add_keys(n, self._built[n])

    def _add_passages(self, structure: TextStructure, site: Site) -> None:
        for passage in structure.passages:
            self._add_result(passage.value, site._replace(pointer=build_passage_pointer(site.pointer, passage)))

    def add_value(self, value: JsonValue, site: Site, bodies: Collection[str] = ()) -> None:
        """Add every leaf of a JSON value. `bodies`: the pointers of texts that are what a tool returned."""
        if isinstance(value, dict):
            holder = build_holder(site, value)
            for key, member in value.items() if site.pointer.count("/") < MAX_DEPTH else ():
                if _is_value(key):
                    self._add_string(Site(build_site(holder, key).pointer, site.source), None, key, ())
                self._add_member(holder, key, member, bodies)
        elif isinstance(value, list):
            self.tables.append((site.pointer, value))
            for n, member in enumerate(value) if site.pointer.count("/") < MAX_DEPTH else ():
                self._add_member(site, n, member, bodies)
        else:
            self._add_member(site, None, value, bodies)

    def _add_member(self, holder: Site, key: str | int | None, value: JsonValue, bodies: Collection[str]) -> None:
        if isinstance(value, str):
            self._add_string(holder, key, value, bodies)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            n = self._hold(holder, key, value)
            if n is not None:
                name = key if isinstance(key, str) else holder.name
                self._add_size(n, *measure(value, name, holder), value)
                if abs(value) >= _LONG_NUMBER:  # it may be written in pieces, or be a moment
                    self._add_keys(n, self.build_facts(n)[1:])
        elif isinstance(value, dict | list):
            self.add_value(value, build_site(holder, key), bodies)

    def _add_string(self, holder: Site, key: str | int | None, text: str, bodies: Collection[str]) -> None:
        if bodies and build_site(holder, key).pointer in bodies:
            self._add_passages(read_text(text), build_site(holder, key))
        elif text[:1] in '{["' or text[:1].isspace() or "\n" in text:
            self._add_passages(read_leaf(text), build_site(holder, key))
        n = self._hold_text(holder, key, text)
        if n is None or not is_code(text):
            return
        bare = text.strip()
        if _DAY.fullmatch(bare):
            self._days[int(bare[5:7]), int(bare[8:])].append(n)
            self._places["day"].append(n)
            self._codes[bare.replace("-", "")].append(n)
        elif CODE.fullmatch(bare):
            for code in list_codes(text):
                self._codes[code].append(n)
        else:
            self._add_keys(n, self.build_facts(n))

    def _hold_text(self, holder: Site, key: str | int | None, text: str) -> int | None:
        """Keep a text for its words and, if it is short, as a name; return its number, if it may be a value."""
        self._unread.append((text, holder.source))
        head = _WORD.search(text)
        is_name = len(text) <= MAX_NAME_CHARS
        n = self._hold(holder, key, text) if head is not None and (is_name or has_digit(text)) else None
        if head is not None and is_name and n is not None:
            first = [head.group().lower()] if text.isascii() else split_plain(text)[:1]
            for word in {name[0] for name in list_names(text) if name} if "," in text else first:
                self._heads[word].append(n)
        return n

    def add_text(self, text: str, pointer: str, source: Source, mentions: list[Mention] | None = None) -> None:
        """Add the words and the values of a text that somebody wrote. `mentions`: its values, if they have been read."""
        self._unread.append((text, source))
        self.add_values(find_values(text, self.today) if mentions is None else mentions, pointer, source)

    def add_words(self, texts: Iterable[tuple[str, Source]]) -> None:
        """Add the words of texts, without their values; each with who wrote it."""
        self._unread += texts

    def add_values(self, mentions: Iterable[Mention], pointer: str, source: Source) -> None:
        """Add the values of a text, without its words."""
        site = Site(pointer, source)
        for mention in mentions:
            readings = list(mention.readings)
            if mention.kind == "weekday":
                readings += [Reading("day", day) for day in list_weekdays(readings[0].number, self.today)]
            n = self._hold(site, None, mention.text)
            if n is not None:
                self._built[n] = [Fact(reading, site, mention.text, whole=False) for reading in readings]
                self._add_keys(n, self._built[n])

    def _hold(self, holder: Site, key: str | int | None, value: JsonValue) -> int | None:
        """Keep a value; return its number, or None where no more fit."""
        n = len(self._held)
        if n >= MAX_FACTS:
            return None
        self._held.append((holder, key, value))
        if type(key) is str and holder.source == "result":
            self._last[key] = n
        return n

    def _add_keys(self, n: int, facts: Sequence[Fact]) -> None:
        for fact in facts:
            value = fact.reading.value
            if isinstance(value, Day):
                self._days[value.month, value.day].append(n)
                self._places["day"].append(n)
            elif isinstance(value, Time):
                self._times[value.seconds // 60].append(n)
            elif isinstance(value, str):
                self._codes[value].append(n)
            elif fact.reading.kind == "number":
                self._add_size(n, fact.reading.dimension, value, fact.reading.written)
                self.said += [fact] if fact.source == "user" else ()

    def _add_size(self, n: int, dimension: str, value: float, written: float) -> None:
        self._sizes[dimension].new.append((abs(value), n))
        if dimension:
            self._written.new.append((abs(written), n))
        self._places["number"].append(n)

    def build_facts(self, n: int) -> list[Fact]:
        """Return the facts that one value is; of a number, the number itself first."""
        found = self._built.get(n)
        if found is None:
            holder, key, value = self._held[n]
            site = build_site(holder, key)
            if isinstance(value, str):
                found = [*read_code(value, site), *read_string(value, site)]
            else:
                found = list(read_number(cast("float", value), site))
            self._built[n] = found
        return found

    def _build(self, places: Sequence[int], kind: str) -> Iterator[Fact]:
        """Yield the facts of a kind that the values of these numbers are."""
        for n in dict.fromkeys(places):
            yield from [fact for fact in self.build_facts(n) if fact.reading.kind == kind]

    def find_named(self, words: tuple[str, ...], prefer: Collection[Source]) -> list[Fact]:
        """Return some of the short texts of these words, those of the preferred sources first."""
        places = self.list_names(words[0]).get(words, ()) if words else ()
        first = [*islice((n for n in places if self._held[n][0].source in prefer), MAX_NAMED)]
        first += islice((n for n in places if self._held[n][0].source not in prefer), MAX_NAMED - len(first))
        held = [(build_site(*self._held[n][:2]), cast("str", self._held[n][2])) for n in first]
        return [Fact(Reading("code", "".join(words)), site, text) for site, text in held]

    def list_names(self, first: str) -> Mapping[tuple[str, ...], list[int]]:
        """Return the short texts that begin with a word, by their words."""
        for n in self._heads.pop(first, ()):
            for name in list_names(cast("str", self._held[n][2])):
                if name and name[0] == first:
                    self._names.setdefault(first, {}).setdefault(name, []).append(n)
        return self._names.get(first, {})

    def find_last(self, name: str) -> Fact | None:
        """Return the last value of a field of the results, if it is one that is looked up."""
        n = self._last.get(name)
        return next(iter(self.build_facts(n)), None) if n is not None else None

    def list_words(self, *, of_results: bool = False) -> set[str]:
        """Return the words of all texts, or of results alone."""
        for text, source in self._unread:
            words = split_plain(text[:MAX_READ_CHARS])
            self._words[False].update(words)
            if source in ("result", "error"):
                self._words[True].update(words)
        self._unread.clear()
        return self._words[of_results]

    def count(self, kind: Literal["number", "day"]) -> int:
        """Return how many places hold a number, or a day."""
        return len(self._places[kind])

    def iter_kind(self, kind: Literal["number", "day"], start: int = 0) -> Iterator[Fact]:
        """Yield the numbers, or the days, from one of their places on."""
        return self._build(self._places[kind][start:], kind)

    def iter_facts(self, within: str) -> Iterator[Fact]:
        """Yield the facts below a pointer."""
        for n, (holder, _, _) in enumerate(self._held):
            if f"{holder.pointer}/".startswith(within):
                yield from self.build_facts(n)

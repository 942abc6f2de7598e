"""What a trace holds, taken in cheaply: each value with keys to find it by. What it may say is read when a text asks for it."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from itertools import islice
from typing import Literal, cast

from pydantic import JsonValue

from service.core.grounding.facts import (
    MAX_DEPTH,
    MAX_NAME_CHARS,
    PLAIN_NUMBER,
    Fact,
    Part,
    Site,
    Source,
    build_holder,
    build_site,
    has_digit,
    is_code,
    list_codes,
    list_names,
    read_facts,
    read_parts,
    split_plain,
)
from service.core.grounding.fields import Beside, apply_unit, read_field, tells_minor
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
_OPENING = frozenset({"{", "[", '"'})
_FEW_NEW = 64
_WORD = re.compile(r"[^\W_]+")


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


class FactStore:
    """The values of a trace up to a point, with keys to find them by. A place is the number of a value.

    Results repeat their texts: what the keys lead to are the first places of each.
    """

    def __init__(self, today: date | None = None) -> None:
        """`today`: what `tomorrow` and `next Friday` count from, in texts that people wrote."""
        self.today = today
        self.tables: list[tuple[str, list[JsonValue]]] = []
        """Every list with its pointer."""
        self.said: list[Fact] = []
        """The numbers in what users wrote."""
        self._held: list[tuple[Site, str | int | None, JsonValue]] = []
        """By place: the site of what holds the value, its key or position there, and the value."""
        self._built: dict[int, list[Fact]] = {}
        self._firsts: dict[str, int] = {}
        """The first places of texts of results; -1 of a text that is no value."""
        self._others: dict[int, list[int]] = defaultdict(list)
        """By the first place of a text, the further ones."""
        self._places: dict[str, list[int]] = {"number": [], "day": []}
        """What holds numbers, and what holds days."""
        self._fields: dict[tuple[str, Beside, bool], list[int]] = defaultdict(list)
        """Numbers that nobody has asked for, by what tells their unit."""
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
        self._last: dict[str | int | None, int] = {}
        """The last value of each field of the results, but for the newest."""
        self._with_last = 0
        self._records: dict[str, list[int]] = defaultdict(list)
        self._with_records = 0
        self._with_first: tuple[int, dict[str, list[Fact]]] = (-1, {})
        self._plain_keys: set[str] = set()
        """Keys that are no values themselves."""
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
            if n >= 0:
                codes = [Part(Reading("code", code), content, n == 0) for n, code in enumerate(list_codes(content))]
                self._built[n] = [Fact(reading, site, content, whole=whole) for reading, _, whole in codes]
                self._add_keys(n, codes)

    def _add_passages(self, structure: TextStructure, site: Site) -> None:
        for passage in structure.passages:
            self._add_result(passage.value, site._replace(pointer=build_passage_pointer(site.pointer, passage)))

    def add_value(self, value: JsonValue, site: Site, bodies: Collection[str] = ()) -> None:
        """Add every leaf of a JSON value. `bodies`: the pointers of texts that are what a tool returned."""
        inside = site.pointer.count("/") < MAX_DEPTH
        if isinstance(value, dict):
            holder, plain = build_holder(site, value), self._plain_keys
            for key in [key for key in value if key not in plain] if inside else ():
                if key.isalpha() or not is_code(key):
                    plain.add(key)
                else:  # it is a value itself: `{"2025-02-10": ...}`
                    self._add_string(Site(build_site(holder, key).pointer, site.source), None, key, ())
            self._add_members(holder, value.items() if inside else (), bodies)
        elif isinstance(value, list):
            self.tables.append((site.pointer, value))
            self._add_members(site, enumerate(value) if inside else (), bodies)
        else:
            self._add_members(site, ((None, value),), bodies)

    def _add_members(
        self, holder: Site, members: Iterable[tuple[str | int | None, JsonValue]], bodies: Collection[str]
    ) -> None:
        held, firsts = self._held, self._firsts if holder.source == "result" and not bodies else {}
        for key, member in members:
            kind = type(member)
            if kind is str:
                first = firsts.get(cast("str", member))
                if first is None:
                    self._add_string(holder, key, cast("str", member), bodies)
                elif first >= 0 and len(held) < MAX_FACTS:
                    self._others[first].append(len(held))
                    held.append((holder, key, member))
            elif kind is int or kind is float:
                self._add_number(holder, key, cast("float", member))
            elif kind is dict or kind is list:
                self.add_value(member, build_site(holder, key), bodies)

    def _add_number(self, holder: Site, key: str | int | None, value: float) -> None:
        n = self._hold(holder, key, value)
        if n >= 0:
            told = holder.minor_told and value == value // 1
            self._fields[key if type(key) is str else holder.name, holder.beside, told].append(n)
            self._places["number"].append(n)
            if abs(value) >= _LONG_NUMBER:  # it may be written in pieces, or be a moment
                self._add_keys(n, self.build_facts(n)[1:])

    def _add_string(self, holder: Site, key: str | int | None, text: str, bodies: Collection[str]) -> None:
        structured = text[:1] in _OPENING or text[:1].isspace() or "\n" in text
        if bodies and build_site(holder, key).pointer in bodies:
            self._add_passages(read_text(text), build_site(holder, key))
        elif structured:
            self._add_passages(read_leaf(text), build_site(holder, key))
        n = self._hold_text(holder, key, text)
        if not structured and holder.source == "result" and not PLAIN_NUMBER.fullmatch(text):
            self._firsts[text] = n
        if n >= 0:
            self._add_keys(n, self.build_facts(n) if PLAIN_NUMBER.fullmatch(text.strip()) else read_parts(text))

    def _hold_text(self, holder: Site, key: str | int | None, text: str) -> int:
        """Keep a text for its words and, if it is short, as a name; return its place, or -1 where it is no value."""
        self._unread.append((text, holder.source))
        head = _WORD.search(text)
        is_name = len(text) <= MAX_NAME_CHARS
        n = self._hold(holder, key, text) if head is not None and (is_name or has_digit(text)) else -1
        if head is not None and is_name and n >= 0:
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
            if n >= 0:
                self._built[n] = [Fact(reading, site, mention.text, whole=False) for reading in readings]
                self._add_keys(n, self._built[n])

    def _hold(self, holder: Site, key: str | int | None, value: JsonValue) -> int:
        """Keep a value; return its place, or -1 where no more fit."""
        n = len(self._held)
        if n >= MAX_FACTS:
            return -1
        self._held.append((holder, key, value))
        return n

    def _add_keys(self, n: int, facts: Iterable[Fact | Part]) -> None:
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
                self._places["number"].append(n)
                self.said += [fact] if isinstance(fact, Fact) and fact.source == "user" else ()

    def _add_size(self, n: int, dimension: str, value: float, written: float) -> None:
        self._sizes[dimension].new.append((abs(value), n))
        if dimension:
            self._written.new.append((abs(written), n))

    def _get_order(self, dimension: str | None) -> Order:
        """Return the numbers of a dimension in their order; None: all that have one, as they are written."""
        for (name, beside, told), places in self._fields.items():
            unit = read_field(name, beside, minor_told=told).unit
            for n in places:
                value = cast("float", self._held[n][2])
                self._add_size(n, *apply_unit(unit, value), value)
        self._fields.clear()
        return self._written if dimension is None else self._sizes[dimension]

    def build_facts(self, n: int) -> list[Fact]:
        """Return the facts that one value is; of a number, the number itself first."""
        found = self._built.get(n)
        if found is None:
            holder, key, value = self._held[n]
            found = read_facts(value, build_site(holder, key))
            self._built[n] = found
        return found

    def _expand(self, places: Iterable[int]) -> Iterable[int]:
        """Return places in their order, each once, with those where the same texts stand."""
        once = dict.fromkeys(places)
        more = [n for one in once if one in self._others for n in self._others[one]]
        return sorted({*once, *more}) if more else once

    def _build(self, places: Iterable[int], kind: str) -> Iterator[Fact]:
        """Yield the facts of a kind that the values at these places are."""
        for n in self._expand(places):
            for fact in self.build_facts(n):
                if fact.reading.kind == kind:
                    yield fact

    def find_named(self, words: tuple[str, ...], prefer: Collection[Source]) -> list[Fact]:
        """Return some of the short texts of these words, those of the preferred sources first."""
        places = self._expand(self.list_names(words[0]).get(words, ()) if words else ())
        first = [*islice((n for n in places if self._held[n][0].source in prefer), MAX_NAMED)]
        first += islice((n for n in places if self._held[n][0].source not in prefer), MAX_NAMED - len(first))
        held = [(build_site(*self._held[n][:2]), cast("str", self._held[n][2])) for n in first]
        return [Fact(Reading("code", "".join(words)), site, text) for site, text in held]

    def list_names(self, first: str) -> Mapping[tuple[str, ...], list[int]]:
        """Return the short texts that begin with a word, by their words."""
        if first in self._heads:
            for n in self._heads.pop(first):
                for name in list_names(cast("str", self._held[n][2])):
                    if name and name[0] == first:
                        self._names.setdefault(first, {}).setdefault(name, []).append(n)
        return self._names.get(first, {})

    def may_name(self, word: str) -> bool:
        """Whether a short text begins with a word."""
        return word in self._names or word in self._heads

    def find_last(self, name: str) -> Fact | None:
        """Return the last value of a field of the results, if it is one that is looked up."""
        for n in range(self._with_last, len(self._held)):
            holder, key, _ = self._held[n]
            if holder.source == "result":
                self._last[key] = n
        self._with_last = len(self._held)
        n = self._last.get(name, -1)
        return next(iter(self.build_facts(n)), None) if n >= 0 else None

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

    def list_first(self, kind: str, most: int) -> list[Fact]:
        """Return the first facts of a kind."""
        if self._with_first[:1] != (len(self._held),):
            facts = (fact for n in range(len(self._held)) for fact in self.build_facts(n))
            first: dict[str, list[Fact]] = defaultdict(list)
            for fact in islice(facts, 4 * most):
                first[fact.reading.kind].append(fact)
            self._with_first = (len(self._held), first)
        return self._with_first[1].get(kind, [])[:most]

    def list_record(self, record: str) -> list[Fact]:
        """Return the facts of the members of an object."""
        for n in range(self._with_records, len(self._held)):
            self._records[self._held[n][0].record].append(n)
        self._with_records = len(self._held)
        return [fact for n in self._records.get(record, ())[:40] for fact in self.build_facts(n)]

"""What a trace holds, taken in once: each distinct value with the places where it stands, and keys to find it by.

A place is the number of a value in the order of the trace, so that what stood before a point of it is told by a number alone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from datetime import date
from typing import TypeVar, cast

from pydantic import JsonValue

from service.core.grounding.facts import (
    PLAIN_NUMBER,
    Fact,
    Site,
    Source,
    is_code,
    list_names,
    list_readings,
    read_number,
    read_parts,
    split_plain,
)
from service.core.grounding.fields import Beside, apply_unit, read_beside, read_field, tells_minor
from service.core.grounding.reading.mentions import Mention, Reading
from service.core.grounding.reading.moments import Day, Time
from service.core.models.light import lazy
from service.core.results.structure import (
    ResultBody,
    TextStructure,
    build_passage_pointer,
    iter_bodies,
    read_leaf,
    read_text,
)
from service.core.trace import Step, ToolDef

MAX_FACTS = 100_000
"""The most values of one trace that are indexed. Beyond it nothing is called `nowhere`."""
MAX_READ_CHARS = 64_000
MAX_DEPTH = 64
_LONG_NUMBER = 10_000_000
"""A number from this on may be written in pieces, or be a moment."""
_OPENING = frozenset({"{", "[", '"'})
_WORD = re.compile(r"[^\W_]")

Places = list[int]
"""Where one distinct value stands, in order."""
Key = TypeVar("Key", bound=Hashable)
Index = dict[Key, list[Places]]


Held = tuple[Site, "str | int | None", JsonValue]
"""The site of what holds a value, its key or position there, and the value."""


class FactStore:
    """The values of a trace. Add everything first: the keys are made when the first is looked up."""

    def __init__(self, today: date | None = None) -> None:
        """`today`: what `tomorrow` and `next Friday` count from, in texts that people wrote."""
        self.today = today
        self.held: list[Held] = []
        """By place."""
        self.tables: list[int] = []
        """The places of lists."""
        self.fields: dict[tuple[str, Beside, bool], dict[float, Places]] = defaultdict(dict)
        """The numbers of each field, by what tells their unit."""
        self._texts: dict[str, Places] = {}
        self._plain: dict[str, Places] = {}
        """Of these, the texts that hold nothing else."""
        self._built: dict[int, list[Fact]] = {}
        self._mentioned: dict[tuple[Reading, ...], Places] = {}
        """The values of texts that somebody wrote, by how they may be read."""
        self._said: list[int] = []
        """The places of texts that somebody wrote."""
        self._plain_keys: set[str] = set()
        """FactKeys that are no values themselves."""

    def add_step(self, step: Step, tool: ToolDef | None, source: Source, bodies: Iterable[ResultBody]) -> None:
        """Add a call's arguments and what it returned. `bodies`: the texts in that."""
        pointer, minor = f"/steps/{step.index}", tells_minor(tool)
        given = cast("JsonValue", dict(step.call.arguments or {}))
        self.add_value(given, Site(f"{pointer}/call/arguments", "argument", minor_told=minor))
        if step.result is not None:
            self._add_result(step.result.content, Site(f"{pointer}/result/content", source, minor_told=minor), bodies)

    def _add_result(self, content: JsonValue, site: Site, bodies: Iterable[ResultBody] | None = None) -> None:
        """Add what a tool returned; of a text, the structure in it and the values of the words around it."""
        if not isinstance(content, str):
            bodies = iter_bodies(content) if bodies is None else bodies
            self.add_value(content, site, {f"{site.pointer}{body.pointer}" for body in bodies})
            return
        structure = read_text(content)
        self._add_passages(structure, site)
        self._hold_text(site, None, content if not structure.passages else structure.rest)

    def _add_passages(self, structure: TextStructure, site: Site) -> None:
        for passage in structure.passages:
            self._add_result(passage.value, site._replace(pointer=build_passage_pointer(site.pointer, passage)))

    def add_value(self, value: JsonValue, site: Site, bodies: Collection[str] = ()) -> None:
        """Add every leaf of a JSON value. `bodies`: the pointers of texts that are what a tool returned."""
        if isinstance(value, dict | list) and site.pointer.count("/") >= MAX_DEPTH:
            return
        if isinstance(value, dict):
            if not self._plain_keys.issuperset(value):
                self._add_keys_that_are_values(value, site)
            holder = Site(site.pointer, site.source, "", site.pointer, read_beside(value), site.minor_told)
            self._add_members(holder, value.items(), bodies)
        elif isinstance(value, list):
            self.tables.append(len(self.held))
            self.held.append((site, None, value))
            self._add_members(site, enumerate(value), bodies)
        else:
            self._add_members(site, ((None, value),), bodies)

    def _add_keys_that_are_values(self, members: Mapping[str, JsonValue], site: Site) -> None:
        """Add keys such as that of `{"2025-02-10": ...}`."""
        for key in members:
            if key.isalpha() or not is_code(key):
                self._plain_keys.add(key)
            else:
                self._add_text(Site(site.enter(key).pointer, site.source), None, key, ())

    def _add_members(
        self, holder: Site, members: Iterable[tuple[str | int | None, JsonValue]], bodies: Collection[str]
    ) -> None:
        held, plain, name = self.held, self._plain if not bodies else {}, holder.name
        for key, member in members:
            kind = type(member)
            if kind is str:
                places = plain.get(cast("str", member))
                if places is None:
                    self._add_text(holder, key, cast("str", member), bodies)
                elif len(held) < MAX_FACTS:
                    places.append(len(held))
                    held.append((holder, key, member))
            elif kind is int or kind is float:
                if len(held) < MAX_FACTS:
                    self._add_number(holder, key if type(key) is str else name, cast("float", member))
                    held.append((holder, key, member))
            elif kind is dict or kind is list:
                self.add_value(member, holder.enter(key), bodies)

    def _add_number(self, holder: Site, name: str, value: float) -> None:
        told = holder.minor_told and value == value // 1
        values = self.fields[name, holder.beside, told]
        if value in values:
            values[value].append(len(self.held))
        else:
            values[value] = [len(self.held)]

    def _add_text(self, holder: Site, key: str | int | None, text: str, bodies: Collection[str]) -> None:
        structured = text[:1] in _OPENING or text[:1].isspace() or "\n" in text
        if bodies and holder.enter(key).pointer in bodies:
            self._add_passages(read_text(text), holder.enter(key))
        elif structured:
            self._add_passages(read_leaf(text), holder.enter(key))
        places = self._hold_text(holder, key, text)
        if places is not None and not structured:
            self._plain[text] = places

    def _hold_text(self, holder: Site, key: str | int | None, text: str) -> Places | None:
        """Keep a text where something else than blanks and marks is in it; return its places unless it is a number, too."""
        if len(self.held) >= MAX_FACTS or not _WORD.search(text):
            return None
        places = self._texts.setdefault(text, [])
        number = PLAIN_NUMBER.fullmatch(text)
        if number is not None:
            self._add_number(holder, key if isinstance(key, str) else holder.name, float(number[1]))
        places.append(len(self.held))
        self.held.append((holder, key, text))
        return places if number is None else None

    def add_said(self, text: str, mentions: Iterable[Mention], pointer: str, source: Source) -> None:
        """Add a text that somebody wrote, as its words and its values."""
        site = Site(pointer, source)
        self._said.append(len(self.held))
        self._built[len(self.held)] = []
        self.held.append((site, None, text))
        for mention in mentions:
            if len(self.held) >= MAX_FACTS:
                return
            readings = list_readings(mention, self.today)
            self._built[len(self.held)] = [Fact(reading, site, mention.text, whole=False) for reading in readings]
            self._mentioned.setdefault(readings, []).append(len(self.held))
            self.held.append((site, None, mention.text))

    def build(self, place: int) -> list[Fact]:
        """Return the facts that one value is, likeliest first but for codes; of a number, the number itself first."""
        found = self._built.get(place)
        if found is None:
            holder, key, value = self.held[place]
            site = holder.enter(key)
            if isinstance(value, str):
                found = [
                    Fact(reading, site, text, whole=whole) for reading, text, whole in read_parts(value, self.today)
                ]
                number = PLAIN_NUMBER.fullmatch(value)
                found += list(read_number(float(number[1]), number[1], site))[:1] if number is not None else ()
            elif isinstance(value, int | float):
                found = list(read_number(float(value), repr(value), site))
            else:
                found = []
            self._built[place] = found
        return found

    @lazy
    def keys(self) -> FactKeys:
        """The keys of everything that was added."""
        keys = FactKeys()
        for text, places in self._texts.items():
            keys.add([part.reading for part in read_parts(text, self.today)], places)
            for words in list_names(text):
                keys.names["".join(words)].append(places)
                keys.name_sizes[words[0]].add(len(words))
        for readings, places in self._mentioned.items():
            keys.add(readings, places)
        for (name, beside, told), values in self.fields.items():
            unit = read_field(name, beside, minor_told=told).unit
            for value, places in values.items():
                dimension, size = apply_unit(unit, value)
                keys.add_size(dimension, size, value, places)
                if abs(value) >= _LONG_NUMBER:
                    keys.add([fact.reading for fact in self.build(places[0])[1:]], places)
        return keys

    @lazy
    def words(self) -> dict[str, list[int]]:
        """By word, the first place of a text that has it and, if any, the first of a result."""
        found: dict[str, list[int]] = {}
        for place in sorted([*[places[0] for places in self._texts.values()], *self._said]):
            holder, _, text = self.held[place]
            returned = holder.source in ("result", "error")
            for word in split_plain(str(text)[:MAX_READ_CHARS]):
                first = found.setdefault(word, [place])
                if returned and len(first) == 1:
                    first.append(place)
        return found

    @lazy
    def records(self) -> dict[str, Places]:
        """By the pointer of an object, the places of its members."""
        found: dict[str, Places] = defaultdict(list)
        for place, (holder, _, _) in enumerate(self.held):
            found[holder.record].append(place)
        return found


class FactKeys:
    """Where values stand, by what they say."""

    def __init__(self) -> None:
        self.codes: Index[str] = defaultdict(list)
        self.names: Index[str] = defaultdict(list)
        """Short texts by their words, joined."""
        self.name_sizes: dict[str, set[int]] = defaultdict(set)
        """By the first word of a name, how many words the names have that begin with it."""
        self.days: Index[tuple[int, int]] = defaultdict(list)
        """By month and day."""
        self.times: Index[int] = defaultdict(list)
        """By minute."""
        self.sizes: dict[str, Index[float]] = defaultdict(lambda: defaultdict(list))
        """By dimension, the numbers in their base unit."""
        self.written: Index[float] = defaultdict(list)
        """All numbers that have a unit, as they are without it."""

    def add(self, readings: Iterable[Reading], places: Places) -> None:
        """Add a value by each of its readings."""
        for reading in readings:
            value = reading.value
            if isinstance(value, str):
                self.codes[value].append(places)
            elif isinstance(value, Day):
                self.days[value.month, value.day].append(places)
            elif isinstance(value, Time):
                self.times[value.seconds // 60].append(places)
            elif reading.kind == "number":
                self.add_size(reading.dimension, value, reading.written, places)

    def add_size(self, dimension: str, value: float, written: float, places: Places) -> None:
        """Add a number of a dimension."""
        self.sizes[dimension][abs(value)].append(places)
        if dimension:
            self.written[abs(written)].append(places)

    def iter_numbers(self) -> Iterator[Places]:
        """Yield where each number stands."""
        for sizes in self.sizes.values():
            for found in sizes.values():
                yield from found

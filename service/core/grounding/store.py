"""What a trace holds, taken in once: each distinct value with the places where it stands, and keys to find it by.

A place is the number of a value in the order of the trace, so that what stood before a point of it is told by a number alone.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar, cast

from pydantic import JsonValue

from service.core.grounding.facts import (
    PLAIN_NUMBER,
    Fact,
    Key,
    Part,
    Site,
    Source,
    build_member_pointer,
    is_code,
    list_names,
    read_number,
    read_parts,
    split_plain,
)
from service.core.grounding.fields import Beside, apply_unit, read_beside, read_field, tells_minor
from service.core.grounding.reading.mentions import Mention, Reading, is_slip, list_digits
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
MAX_SLIP_CHARS = 64
_LONG_NUMBER = 10_000_000
"""A number from this on may be written in pieces, or be a moment."""
_OPENING = frozenset({"{", "[", '"'})
_WORD = re.compile(r"[^\W_]")


class Cell:
    """A distinct value, of one field if it is a number: where it stands, in order, and how it may be read."""

    __slots__ = ("parts", "places", "value")

    def __init__(self, value: str | float, parts: Sequence[Part] | None = None) -> None:
        self.value, self.parts = value, parts
        self.places = array("l")  # no objects for the garbage collector to look through


T = TypeVar("T", bound=Hashable)


class Index(Generic[T]):
    """Values by what they say: mostly one each, which then makes no list."""

    def __init__(self) -> None:
        self.cells: dict[T, Cell | list[Cell]] = {}

    def add(self, key: T, cell: Cell) -> None:
        """Add a value, once."""
        held = self.cells.get(key)
        if held is None:
            self.cells[key] = cell
        elif isinstance(held, Cell):
            self.cells[key] = held if held is cell else [held, cell]
        elif held[-1] is not cell:
            held.append(cell)

    def get(self, key: T) -> Sequence[Cell]:
        """Return the values that say this."""
        held = self.cells.get(key, ())
        return (held,) if isinstance(held, Cell) else held

    def list_groups(self) -> list[Sequence[Cell]]:
        """List the values that say each thing."""
        return [*map(self.get, self.cells)]


class SlipIndex:
    """Texts by what is left of them without one character: two that are a slip apart have such a part in common."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._parts: dict[str, list[str]] = defaultdict(list)
        for text in texts:
            for part in self._list_parts(text):
                self._parts[part].append(text)

    def _list_parts(self, text: str) -> Iterable[str]:
        return dict.fromkeys([text, *[text[:at] + text[at + 1 :] for at in range(len(text))]])

    def find(self, text: str) -> list[str]:
        """Return the texts that are one slip away."""
        near = dict.fromkeys([one for part in self._list_parts(text) for one in self._parts.get(part, ())])
        return [one for one in near if is_slip(text, one)]


class FactStore:
    """The values of a trace. Add everything first: the keys are made when the first is looked up."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        """By place, where the holder of a value stands."""
        self.members: list[Key] = []
        """By place, the key or position of a value in its holder."""
        self.cells: list[Cell] = []
        """By place, the value."""
        self.tables: list[tuple[int, str, int]] = []
        """Of each list the place before it, its pointer, and how many items it has."""
        self.fields: dict[tuple[Beside, bool], dict[str, dict[str | float, Cell]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        """The numbers of each field, by what tells their unit and by its name."""
        self._texts: dict[str, Cell] = {}
        self._structured: dict[str, Cell] = {}
        """Texts that hold other values."""
        self._said: list[Cell] = []
        """Texts that somebody wrote."""
        self._mentioned: dict[tuple[str, tuple[Reading, ...]], Cell] = {}
        """The values of those, by what they are and how they may be read."""
        self._plain_keys: set[str] = set()
        """Keys that are no values themselves."""

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
        if isinstance(value, dict | list):
            self._add_container(site, None, value, bodies)
        else:
            self._add_members(site, ((None, value),), bodies)

    def _add_container(
        self, outer: Site, key: Key, value: dict[str, JsonValue] | list[JsonValue], bodies: Collection[str]
    ) -> None:
        if isinstance(value, list):
            site = outer.enter(key)
            self.tables.append((len(self.cells) - 1, site.pointer, len(value)))
            self._add_members(site, enumerate(value), bodies)
            return
        pointer = build_member_pointer(outer.pointer, key)
        site = Site(pointer, outer.source, "", pointer, read_beside(value), outer.minor_told)
        if not self._plain_keys.issuperset(value):
            self._add_keys_that_are_values(value, site)
        self._add_members(site, value.items(), bodies)

    def _add_keys_that_are_values(self, members: Mapping[str, JsonValue], site: Site) -> None:
        """Add keys such as that of `{"2025-02-10": ...}`."""
        for key in members:
            if key.isalpha() or not is_code(key):
                self._plain_keys.add(key)
            else:
                self._add_text(Site(site.enter(key).pointer, site.source), None, key, ())

    def _add_members(self, holder: Site, members: Iterable[tuple[Key, JsonValue]], bodies: Collection[str]) -> None:
        known, name, cells, told = self._texts if not bodies else {}, holder.name, self.cells, holder.minor_told
        add_site, add_member, add_cell = self.sites.append, self.members.append, cells.append
        fields = self.fields[holder.beside, False]
        for key, member in members:
            if len(cells) >= MAX_FACTS:
                return
            if type(member) is str:
                cell = known.get(member)
                if cell is None and not bodies and member[:1].isalpha() and "\n" not in member:  # most texts
                    cell = known[member] = Cell(member)
                elif cell is None:
                    self._add_text(holder, key, member, bodies)
                    continue
            elif type(member) is int or type(member) is float:
                minor = told and member == member // 1
                values = (fields if not minor else self.fields[holder.beside, True])[key if type(key) is str else name]
                cell = values.get(member)
                if cell is None:
                    cell = values[member] = Cell(member)
            else:
                if (type(member) is dict or type(member) is list) and holder.pointer.count("/") < MAX_DEPTH:
                    self._add_container(holder, key, member, bodies)
                continue
            cell.places.append(len(cells))
            add_site(holder)
            add_member(key)
            add_cell(cell)

    def _hold(self, holder: Site, key: Key, cell: Cell) -> None:
        cell.places.append(len(self.cells))
        self.sites.append(holder)
        self.members.append(key)
        self.cells.append(cell)

    def _add_text(self, holder: Site, key: Key, text: str, bodies: Collection[str]) -> None:
        structured = text[:1] in _OPENING or text[:1].isspace() or "\n" in text
        if bodies and holder.enter(key).pointer in bodies:
            self._add_passages(read_text(text), holder.enter(key))
        elif structured:
            self._add_passages(read_leaf(text), holder.enter(key))
        self._hold_text(holder, key, text, structured=structured)

    def _hold_text(self, holder: Site, key: Key, text: str, *, structured: bool = False) -> None:
        """Hold a text where something else than blanks and marks is in it."""
        if len(self.cells) >= MAX_FACTS or not _WORD.search(text):
            return
        number = PLAIN_NUMBER.fullmatch(text)
        if number is None:
            texts = self._structured if structured else self._texts
            cell = texts.get(text) or texts.setdefault(text, Cell(text))
        else:
            value, name = float(number[1]), key if isinstance(key, str) else holder.name
            told = holder.minor_told and value == value // 1
            cells = self.fields[holder.beside, told][name]
            cell = cells.get(text) or cells.setdefault(text, Cell(text))
        self._hold(holder, key, cell)

    def add_said(self, text: str, mentions: Iterable[Mention], pointer: str, source: Source) -> None:
        """Add a text that somebody wrote, as its words and its values."""
        site = Site(pointer, source)
        self._said.append(Cell(text, ()))
        self._hold(site, None, self._said[-1])
        for one in mentions:
            if len(self.cells) >= MAX_FACTS:
                return
            cell = self._mentioned.get((one.text, one.readings))
            if cell is None:
                parts = [Part(reading, one.text, whole=False) for reading in one.readings]
                cell = self._mentioned[one.text, one.readings] = Cell(one.text, parts)
            self._hold(site, None, cell)

    def read(self, cell: Cell) -> Sequence[Part]:
        """Return what one value may be, likeliest first but for codes; of a number, the number itself first."""
        if cell.parts is None:
            text = cell.value if isinstance(cell.value, str) else repr(cell.value)
            found = read_parts(text) if isinstance(cell.value, str) else ()
            if not isinstance(cell.value, str) or PLAIN_NUMBER.fullmatch(text):
                site, key, number = self.sites[cell.places[0]], self.members[cell.places[0]], float(cell.value)
                field = key if isinstance(key, str) else site.name
                parts = read_number(number, text.strip(), field, site.beside, told=site.minor_told)
                found = [*found, *parts[: 1 if found else None]]
            cell.parts = found
        return cell.parts

    def build(self, place: int) -> list[Fact]:
        """Return the facts that stand at a place."""
        site, key = self.sites[place], self.members[place]
        return [Fact(*part, site, key) for part in self.read(self.cells[place])]

    @lazy
    def keys(self) -> FactKeys:
        """The keys of everything that was added."""
        keys = FactKeys()
        for cell in self._mentioned.values():
            keys.add(cell, self.read(cell))
        for text, cell in (*self._texts.items(), *self._structured.items()):
            keys.add(cell, self.read(cell))
            for words in list_names(text):
                keys.names.add("".join(words), cell)
                keys.name_sizes[words[0]].add(len(words))
        for (beside, told), names in self.fields.items():
            for name, cells in names.items():
                unit = read_field(name, beside, minor_told=told).unit
                for value, cell in cells.items():
                    if isinstance(value, str):
                        keys.add(cell, self.read(cell))
                        continue
                    keys.add_size(*apply_unit(unit, value), value, cell)
                    if abs(value) >= _LONG_NUMBER:
                        keys.add(cell, self.read(cell)[1:])
        return keys

    @lazy
    def digits(self) -> Index[str]:
        """Numbers by their digits, with and without zeros at the end."""
        found = Index[str]()
        for cell in dict.fromkeys(self.cells):
            for digits in {list_digits(part.text) for part in self.read(cell) if part.reading.kind == "number"}:
                found.add(digits, cell)
                found.add(digits.rstrip("0"), cell)
        return found

    @lazy
    def digit_slips(self) -> SlipIndex:
        """Digits of numbers by what is a slip away."""
        return SlipIndex(self.digits.cells)

    @lazy
    def words(self) -> dict[str, list[int]]:
        """By word, the first place of a text that has it and, if any, the first of a result."""
        found: dict[str, list[int]] = {}
        texts = [*self._texts.values(), *self._structured.values(), *self._said]
        for place in sorted([cell.places[0] for cell in texts]):
            returned = self.sites[place].source in ("result", "error")
            for word in split_plain(str(self.cells[place].value)[:MAX_READ_CHARS]):
                first = found.setdefault(word, [place])
                if returned and len(first) == 1:
                    first.append(place)
        return found

    @lazy
    def records(self) -> dict[str, list[int]]:
        """By the pointer of an object, the places of its members."""
        found: dict[str, list[int]] = defaultdict(list)
        for place, site in enumerate(self.sites):
            found[site.record].append(place)
        return found

    @lazy
    def said(self) -> list[tuple[int, Fact]]:
        """The numbers in what users wrote, with their places."""
        places = [place for place, site in enumerate(self.sites) if site.source == "user"]
        return [(n, fact) for n in places for fact in self.build(n) if fact.reading.kind == "number"]


class FactKeys:
    """Values by what they say; orders of the keys, and what is a slip away from them, are made when they are asked for."""

    def __init__(self) -> None:
        self.codes, self.names = Index[str](), Index[str]()
        """Codes; and short texts by their words, joined."""
        self.name_sizes: dict[str, set[int]] = defaultdict(set)
        """By the first word of a name, how many words the names have that begin with it."""
        self.days, self.times = Index[tuple[int, int]](), Index[int]()
        """By month and day; by minute."""
        self.sizes: dict[str | None, Index[float]] = defaultdict(Index)
        """By dimension, the numbers in their base unit; by None, all that have a unit, as they are without it."""
        self._orders: dict[str | None, list[float]] = {}

    def add(self, cell: Cell, parts: Iterable[Part]) -> None:
        """Add a value in the ways in which it may be read."""
        for reading, *_ in parts:
            value = reading.value
            if isinstance(value, str):
                self.codes.add(value, cell)
            elif isinstance(value, Day):
                self.days.add((value.month, value.day), cell)
            elif isinstance(value, Time):
                self.times.add(value.seconds // 60, cell)
            else:
                self.add_size(reading.dimension, value, reading.written, cell)

    def add_size(self, dimension: str, size: float, written: float, cell: Cell) -> None:
        """Add a number of a dimension."""
        self.sizes[dimension].add(abs(size), cell)
        if dimension:
            self.sizes[None].add(abs(written), cell)

    def sort_sizes(self, dimension: str | None) -> list[float]:
        """Return the sizes of a dimension in order; None: of all numbers that have one, as written."""
        found = self._orders.get(dimension)
        if found is None:
            found = self._orders[dimension] = sorted(self.sizes[dimension].cells)
        return found

    @lazy
    def sorted_codes(self) -> tuple[list[str], list[str]]:
        """All codes in order, and all from the back, in order."""
        return sorted(self.codes.cells), sorted([code[::-1] for code in self.codes.cells])

    @lazy
    def code_slips(self) -> SlipIndex:
        """Codes by what is a slip away."""
        return SlipIndex([code for code in self.codes.cells if len(code) <= MAX_SLIP_CHARS])

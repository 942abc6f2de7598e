"""Results as entities: what each is called, what it holds, and which others are its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple, TypeVar

from service.core.evidence.facts.facts import Collection, Fact, FactRecord
from service.core.evidence.facts.scale import Scale
from service.core.evidence.reading import numbers
from service.core.evidence.reading.dates import WEEKDAYS
from service.core.evidence.reading.quantities import Quantity, Value
from service.core.evidence.reading.words import split_name, split_tokens, split_words, stem_word
from service.core.models.lazy import lazy

T = TypeVar("T")

MAX_NAME_CHARS, MAX_NAME_WORDS = 60, 7
MAX_INSIDE = 400
"""Facts of one entity that a claim is held against."""
MAX_GROUP = 400
"""Entities of one kind of which the names are known."""
MAX_DAYS = 31
"""Different days among which one is looked for by its weekday."""
MAX_FLAGS = 200
_FILLER = split_words("is has was are flag be been can")
ROLES = {
    "from": split_words("from origin source sender departure start depart pickup"),
    "to": split_words("to destination target recipient receiver arrival end arrive dropoff"),
}
"""Parts that things play, by the words of fields."""
_CHAIN = 6
_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,4}){2,3}")
_NUMBER = re.compile(numbers.WORDS)
_NAMING = split_words("name title label description product item subject model brand company team player city")
"""Words of fields whose values name an entity even in small letters."""
_COMMON = split_words("the and for with from not was are has all one two new other most none true false yes")

Group = tuple[object, ...]
Words = tuple[str, ...]


@dataclass(slots=True, eq=False)
class Entity:
    """An item of an array, an object under a key of its own, or a whole result (`group` is empty)."""

    group: Group
    place: int
    above: Entity | None = None
    own: list[Fact] = field(default_factory=list[Fact])
    """Its own values, not those of the entities in it."""
    inside: list[Fact] = field(default_factory=list[Fact])
    """Its values and those of all that is in it."""
    collection: Collection | None = None

    def iter_around(self) -> Iterator[Fact]:
        """The values of what it is in, which are its siblings' too."""
        above = self.above
        while above is not None:
            yield from above.own[:MAX_INSIDE]
            above = above.above


def read_flag(fact: Fact) -> bool | None:
    """Whether a field is true or false, as JSON or tables say it; None where it is neither."""
    if isinstance(fact.value, str):
        return _FLAGS.get(fact.value.lower())
    return fact.value if isinstance(fact.value, bool) else None


_FLAGS = {"true": True, "false": False}


class Name(NamedTuple):
    """What an entity is called: by which field, and whether the words are a proper name."""

    entity: Entity
    column: Words
    proper: bool
    fact: Fact | None


class Holdings:
    """All entities of the results so far, by what they are called."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._made: dict[object, object] = {}
        self._by_record: dict[int, Entity] = {}
        self._sizes: dict[Group, int] = {}
        self.facts = list(facts)
        for fact in self.facts:
            self._add(fact, self._find_entity(fact.record))
        self.entities = list(self._by_record.values())
        self.entities += _build_keyed(self.entities)
        self.groups: dict[Group, list[Entity]] = {}
        for entity in self.entities:
            if entity.group:
                self.groups.setdefault(entity.group, []).append(entity)

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` gave the first time it was asked for under this key: every text is held against the same results."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]  # pyright: ignore[reportReturnType] (what `make` gave)

    @lazy
    def scale(self) -> Scale:
        """All their numbers, in order."""
        return Scale(self.facts)

    def _find_entity(self, record: FactRecord) -> Entity:
        entity = self._by_record.get(id(record))
        if entity is None:
            above = self._find_entity(record.above) if record.above is not None else None
            group = _find_group(record)
            place = self._sizes[group] = self._sizes.get(group, -1) + 1
            entity = self._by_record[id(record)] = Entity(group, place, above, collection=record.collection)
        return entity

    @staticmethod
    def _add(fact: Fact, entity: Entity) -> None:
        entity.own.append(fact)
        here: Entity | None = entity
        for _ in range(_CHAIN):
            if here is None:
                return
            here.inside.append(fact)
            here = here.above

    @lazy
    def names(self) -> dict[Words, list[Name]]:
        """The texts that entities hold, by their words: names where few hold them, values else."""
        found: dict[Words, list[Name]] = {}
        for entity in self.entities:
            for words, name in _iter_names(entity):
                held = found.setdefault(words, [])
                if len(held) < MAX_GROUP:
                    held.append(name)
        return found

    @lazy
    def heads(self) -> dict[str, list[Words]]:
        """The names by their first words, longest first."""
        found: dict[str, list[Words]] = {}
        for words in self.names:
            found.setdefault(words[0], []).append(words)
        for one in found.values():
            one.sort(key=len, reverse=True)
        return found

    @lazy
    def telling(self) -> dict[str, tuple[Entity, Words]]:
        """Words that stand in the name of one entity of its kind alone, among names that tell all of its kind apart."""
        found: dict[str, dict[int, tuple[Entity, Words]]] = {}
        for words, names in self.names.items():
            for name in names if 1 < len(words) <= MAX_NAME_WORDS else ():
                group = name.entity.group
                if name.proper and 1 < len(self.groups.get(group, ())) <= MAX_GROUP and self.is_key(group, name.column):
                    for word in {stem_word(word) for word in words}:
                        found.setdefault(word, {})[id(name.entity)] = (name.entity, name.column)
        told = {word: next(iter(held.values())) for word, held in found.items() if len(held) == 1}
        return {word: held for word, held in told.items() if len(word) > 2 and word not in self.field_words | _COMMON}

    @lazy
    def columns(self) -> dict[tuple[Group, Words], int]:
        """How many different texts a field has among the entities of a kind."""
        found: dict[tuple[Group, Words], set[str]] = {}
        for entity in self.entities:
            for fact in entity.own:
                if isinstance(fact.value, str):
                    found.setdefault((entity.group, fact.path), set()).add(fact.value)
        return {key: len(values) for key, values in found.items()}

    def is_key(self, group: Group, column: Words) -> bool:
        """Whether a field tells the entities of a kind apart: each has another text there, or it is their key or day."""
        return column == ("",) or self.columns.get((group, column), 0) == len(self.groups.get(group, ()))

    def find_place(self, group: Group, column: Words) -> int:
        """The place of a field among those of its kind."""
        own = self.groups[group][0].own if group in self.groups else ()
        return next((n for n, fact in enumerate(own[:MAX_GROUP]) if fact.path == column), 0)

    @lazy
    def field_words(self) -> frozenset[str]:
        """The words of the names of fields."""
        return frozenset(word for fact in self.facts for word in (*fact.own, *fact.above))

    @lazy
    def flagged(self) -> list[Fact]:
        """The facts that are true or false, also as text."""
        return [fact for fact in self.facts if read_flag(fact) is not None]

    @lazy
    def flags(self) -> dict[frozenset[str], frozenset[Words]]:
        """The fields that are true or false, by the words of their names."""
        found: dict[frozenset[str], set[Words]] = {}
        for fact in self.flagged:
            words = frozenset(fact.own) - _FILLER.union(_FLAGS)
            if words and (len(found) < MAX_FLAGS or words in found):
                found.setdefault(words, set()).add(fact.path)
        return {words: frozenset(paths) for words, paths in found.items()}

    @lazy
    def roles(self) -> dict[str, frozenset[Words]]:
        """The fields that say who or what plays a part: `from`, `to`."""
        paths = {fact.path: fact.own for fact in self.facts if isinstance(fact.value, str)}
        return {role: frozenset(p for p, own in paths.items() if words & {*own}) for role, words in ROLES.items()}

    @lazy
    def by_value(self) -> dict[Value, list[Fact]]:
        """The facts by each of their values."""
        found: dict[Value, list[Fact]] = {}
        for fact in self.facts:
            for value in {value for held in fact.quantities for value in held.values}:
                found.setdefault(value, []).append(fact)
        return found

    def holds(self, said: Quantity) -> bool:
        """Whether any fact has this number, whatever it is of: as it is, or counted in hundredths."""
        number = said.number
        ways = [*said.values, *([number * 100, number / 100, -number] if number is not None else [])]
        return any(value in self.by_value for value in ways)

    @lazy
    def _moments(self) -> frozenset[str]:
        """The days that facts give, also without their year, and the times to the minute."""
        found: set[str] = set()
        for fact in self.facts:
            for held in fact.quantities:
                if held.kind == "date":
                    days = {str(value)[:10] for value in held.values}
                    found |= days | {f"-{day[4:]}" for day in days if day[0] != "-"}
                    found |= {f"*{day[1:]}" for day in days if day[0] == "-"}
                elif held.kind == "time":
                    found.add(str(held.value)[:5])
        return frozenset(found)

    def has_moment(self, said: Quantity) -> bool:
        """Whether a fact gives a day or a time, whatever it is of; one without a year is of any."""
        if said.kind == "time":
            return str(said.value)[:5] in self._moments
        days = [str(value)[:10] for value in said.values]
        return any(day in self._moments or f"*{day[4:] if day[0] != '-' else day[1:]}" in self._moments for day in days)

    @lazy
    def by_path(self) -> dict[Words, list[Fact]]:
        """The facts of each field."""
        found: dict[Words, list[Fact]] = {}
        for fact in self.facts:
            found.setdefault(fact.path, []).append(fact)
        return found

    @lazy
    def dated(self) -> list[Fact]:
        """The facts that give a date."""
        return [fact for fact in self.facts if any(held.kind == "date" for held in fact.quantities)]

    @lazy
    def _by_day(self) -> dict[Group, dict[str, list[Entity]]]:
        """Entities by month and day of their first date."""
        found: dict[Group, dict[str, list[Entity]]] = {}
        for entity in self.entities:
            day = next((day for fact in entity.own for day in list_days(fact)), None)
            if day is not None and len(self.groups.get(entity.group, ())) > 1:
                found.setdefault(entity.group, {}).setdefault(day[-5:], []).append(entity)
        return found

    def find_of_day(self, quantity: Quantity | None, weekday: str) -> list[Entity]:
        """The entities of which, among their kind, only one is of this day."""
        if not weekday and (quantity is None or quantity.kind != "date"):
            return []
        said = {str(value)[-5:] for value in quantity.values} if quantity else set[str]()
        found: list[Entity] = []
        for days in self._by_day.values():
            keys = [day for day in days if day in said] if not weekday else []
            if weekday and len(days) <= MAX_DAYS:
                keys = [
                    day
                    for day, held in days.items()
                    if any(name_weekday(one) == weekday for fact in held[0].own for one in list_days(fact)[:1])
                ]
            if len(keys) == 1 and len(days[keys[0]]) == 1:
                found += days[keys[0]]
        return found

    def find_unique(self, words: Words) -> list[Name]:
        """The names of entities of which, among their kind, only one is called so by this field."""
        by_column: dict[tuple[Group, Words], list[Name]] = {}
        for name in self.names.get(words, ()):
            if len(self.groups.get(name.entity.group, ())) > 1:
                by_column.setdefault((name.entity.group, name.column), []).append(name)
        return [names[0] for names in by_column.values() if len({id(name.entity) for name in names}) == 1]


def list_days(fact: Fact) -> list[str]:
    """The dates that a fact gives with their year."""
    return [str(held.value)[:10] for held in fact.quantities if held.kind == "date" and str(held.value)[0] != "-"]


def name_weekday(day: str) -> str:
    """The weekday of an ISO date; "" where there is no such day.

    >>> name_weekday("2024-01-01"), name_weekday("--01-01")
    ('monday', '')
    """
    try:
        return WEEKDAYS[date.fromisoformat(day[:10]).weekday()]
    except ValueError:
        return ""


def _find_group(record: FactRecord) -> Group:
    if record.collection is not None:
        return ("array", record.collection.path, id(record.collection))
    return ("keys", id(record.above)) if record.above is not None else ()


def _build_keyed(entities: Sequence[Entity]) -> list[Entity]:
    """Objects side by side under keys of their own that have fields of the same names: `savings` and `loan`."""
    found: dict[tuple[int, Words], Entity] = {}
    for entity in entities:
        base = len(entity.collection.path) if entity.collection else 0
        for fact in entity.own:
            for length in range(base + 1, len(fact.path)):
                prefix = fact.path[:length]
                key = (id(entity), prefix)
                if key not in found:
                    found[key] = Entity(("object", id(entity), prefix[:-1]), len(found), entity)
                found[key].inside.append(fact)
                if len(fact.path) == length + 1:
                    found[key].own.append(fact)
    by_group: dict[Group, list[tuple[Words, Entity]]] = {}
    for (_, prefix), entity in found.items():
        by_group.setdefault(entity.group, []).append((prefix, entity))
    return [
        entity for members in by_group.values() for prefix, entity in members if _shares_field(prefix, entity, members)
    ]


def _shares_field(prefix: Words, entity: Entity, members: Sequence[tuple[Words, Entity]]) -> bool:
    mine = {fact.path[len(prefix) :] for fact in entity.inside}
    return any(
        other is not entity and mine & {fact.path[len(prefix) :] for fact in other.inside}
        for _, other in members[:MAX_GROUP]
    )


def _iter_names(entity: Entity) -> Iterator[tuple[Words, Name]]:
    if entity.group[:1] == ("object",) and entity.own:
        path = entity.own[0].path[:-1]
        if words := split_name(path[-1]):
            yield words, Name(entity, ("",), False, None)
    for fact in entity.own[:MAX_INSIDE]:
        if not isinstance(fact.value, str) or not 1 < len(fact.value) <= MAX_NAME_CHARS:
            continue
        words = split_tokens(fact.value)
        coded = (fact.value.isdigit() and len(fact.value) > 3) or _VERSION.fullmatch(fact.value) is not None
        if not words or len(words) > MAX_NAME_WORDS or not (coded or any(c.isalpha() for c in fact.value)):
            continue
        if {held.kind for held in fact.quantities} & {"date", "time"}:
            continue
        proper = any(c.isupper() or c.isdigit() for c in fact.value) or bool(_NAMING & set(fact.own))
        if len(words) == 1 and (words[0] in _COMMON or _NUMBER.fullmatch(words[0])):
            continue
        if len(words) > 1 or len(words[0]) > 2 or proper:
            column = ("",) if words[0] in WEEKDAYS else fact.path
            yield tuple(words), Name(entity, column, proper, fact)

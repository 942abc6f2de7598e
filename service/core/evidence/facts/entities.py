"""Group facts into entities: what each is called, what values it holds, and which others are of its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from service.core.evidence.facts.facts import Collection, Fact, FactRecord
from service.core.evidence.facts.scale import Scale
from service.core.evidence.reading import numbers
from service.core.evidence.reading.dates import WEEKDAYS, name_weekday
from service.core.evidence.reading.quantities import Quantity, Value
from service.core.evidence.reading.words import split_name, split_tokens, split_words, stem_word
from service.core.models.lazy import lazy

T = TypeVar("T")

MAX_NAME_CHARS, MAX_NAME_WORDS = 60, 7
MAX_INSIDE = 400
"""Facts of one entity that a claim is compared with."""
MAX_GROUP = 400
"""Entities of one kind whose names are indexed."""
MAX_DAYS = 31
"""Distinct days up to which a weekday is looked up among them."""
MAX_FLAGS = 200
_FILLER = split_words("is has was are flag be been can")
ROLES = {
    "from": split_words("from origin source sender departure start depart pickup"),
    "to": split_words("to destination target recipient receiver arrival end arrive dropoff"),
}
"""The roles that a value can play, with the words in field names that express them."""
_MAX_DEPTH = 6
_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,4}){2,3}")
_NUMBER = re.compile(numbers.WORDS)
_NAMING_FIELDS = split_words("name title label description product item subject model brand company team player city")
"""Words of fields whose values name an entity even in lower case."""
_COMMON = split_words("the and for with from not was are has all one two new other most none true false yes")

Group = tuple[object, ...]
Words = tuple[str, ...]


@dataclass(slots=True, eq=False)
class Entity:
    """An item of an array, an object under its own key, or a whole result (then `group` is empty).

    `group` identifies the entities of its kind, and `place` is its position among them.
    """

    group: Group
    place: int
    above: Entity | None = None
    own: list[Fact] = field(default_factory=list[Fact])
    """Its own values, without those of nested entities."""
    inside: list[Fact] = field(default_factory=list[Fact])
    """Its own values and those of everything nested in it."""
    collection: Collection | None = None

    def iter_around(self) -> Iterator[Fact]:
        """Iterate over the values of the entities that enclose it, which it shares with its siblings."""
        above = self.above
        while above is not None:
            yield from above.own[:MAX_INSIDE]
            above = above.above


def read_flag(fact: Fact) -> bool | None:
    """Return a fact's truth value, given as JSON or as text; None if it is neither true nor false."""
    if isinstance(fact.value, str):
        return _FLAGS.get(fact.value.lower())
    return fact.value if isinstance(fact.value, bool) else None


_FLAGS = {"true": True, "false": False}


class Name(NamedTuple):
    """A name of an entity. `column`: the path of the field that gives it; `proper`: whether it is a proper name."""

    entity: Entity
    column: Words
    proper: bool
    fact: Fact | None


class Holdings:
    """All entities of the results so far, with lookups by name, value, field and day."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._results: dict[object, object] = {}
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
        """Return what `make` returned on the first call under this key: every text is compared with the same results."""
        if key not in self._results:
            self._results[key] = make()
        return self._results[key]  # pyright: ignore[reportReturnType] (the result of `make`)

    def find_owner(self, fact: Fact) -> Entity:
        """Return the entity that holds a fact as its own."""
        return self._by_record[id(fact.record)]

    @lazy
    def scale(self) -> Scale:
        """All numbers of the facts, sorted by size."""
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
        for _ in range(_MAX_DEPTH):
            if here is None:
                return
            here.inside.append(fact)
            here = here.above

    @lazy
    def names(self) -> dict[Words, list[Name]]:
        """The texts that entities hold, by their words: names if few entities hold them, plain values otherwise."""
        found: dict[Words, list[Name]] = {}
        for entity in self.entities:
            for words, name in _iter_names(entity):
                namesakes = found.setdefault(words, [])
                if len(namesakes) < MAX_GROUP:
                    namesakes.append(name)
        return found

    @lazy
    def heads(self) -> dict[str, list[Words]]:
        """Names by their first word, longest first."""
        found: dict[str, list[Words]] = {}
        for words in self.names:
            found.setdefault(words[0], []).append(words)
        for names in found.values():
            names.sort(key=len, reverse=True)
        return found

    @lazy
    def telling(self) -> dict[str, tuple[Entity, Words]]:
        """Words that occur in the name of only one entity of its kind, among names that are unique within the kind."""
        found: dict[str, dict[int, tuple[Entity, Words]]] = {}
        for words, names in self.names.items():
            for name in names if 1 < len(words) <= MAX_NAME_WORDS else ():
                group = name.entity.group
                if name.proper and 1 < len(self.groups.get(group, ())) <= MAX_GROUP and self.is_key(group, name.column):
                    for word in {stem_word(word) for word in words}:
                        found.setdefault(word, {})[id(name.entity)] = (name.entity, name.column)
        unique = {word: next(iter(owners.values())) for word, owners in found.items() if len(owners) == 1}
        return {
            word: owner for word, owner in unique.items() if len(word) > 2 and word not in self.field_words | _COMMON
        }

    @lazy
    def columns(self) -> dict[tuple[Group, Words], int]:
        """How many distinct texts a field has among the entities of a kind."""
        found: dict[tuple[Group, Words], set[str]] = {}
        for entity in self.entities:
            for fact in entity.own:
                if isinstance(fact.value, str):
                    found.setdefault((entity.group, fact.path), set()).add(fact.value)
        return {key: len(values) for key, values in found.items()}

    def is_key(self, group: Group, column: Words) -> bool:
        """Whether a field is unique within a kind: each entity has a different text there, or it is their key or day."""
        return column == ("",) or self.columns.get((group, column), 0) == len(self.groups.get(group, ()))

    def find_place(self, group: Group, column: Words) -> int:
        """Return the position of a field among the fields of a kind's first entity; 0 if it is not there."""
        own = self.groups[group][0].own if group in self.groups else ()
        return next((n for n, fact in enumerate(own[:MAX_GROUP]) if fact.path == column), 0)

    @lazy
    def field_words(self) -> frozenset[str]:
        """Every word that occurs in the name of a field."""
        return frozenset(word for fact in self.facts for word in (*fact.own, *fact.above))

    @lazy
    def flagged(self) -> list[Fact]:
        """The facts that are true or false, including those given as text."""
        return [fact for fact in self.facts if read_flag(fact) is not None]

    @lazy
    def flags(self) -> dict[frozenset[str], frozenset[Words]]:
        """The fields that hold true or false, by the words of their names."""
        found: dict[frozenset[str], set[Words]] = {}
        for fact in self.flagged:
            words = frozenset(fact.own) - _FILLER.union(_FLAGS)
            if words and (len(found) < MAX_FLAGS or words in found):
                found.setdefault(words, set()).add(fact.path)
        return {words: frozenset(paths) for words, paths in found.items()}

    @lazy
    def roles(self) -> dict[str, frozenset[Words]]:
        """The fields that say who or what plays a role, by role (`from`, `to`)."""
        paths = {fact.path: fact.own for fact in self.facts if isinstance(fact.value, str)}
        return {role: frozenset(p for p, own in paths.items() if words & {*own}) for role, words in ROLES.items()}

    @lazy
    def by_value(self) -> dict[Value, list[Fact]]:
        """Facts by each of their values."""
        found: dict[Value, list[Fact]] = {}
        for fact in self.facts:
            for value in {value for held in fact.quantities for value in held.values}:
                found.setdefault(value, []).append(fact)
        return found

    def holds(self, said: Quantity) -> bool:
        """Whether any fact, whatever its field, has this value, as it is, negated, or scaled by 100 either way."""
        number = said.number
        ways = [*said.values, *([number * 100, number / 100, -number] if number is not None else [])]
        return any(value in self.by_value for value in ways)

    @lazy
    def _moments(self) -> frozenset[str]:
        """The days that facts give, with and without their year, and the times, to the minute."""
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
        """Whether any fact, whatever its field, gives this day or time; a day without a year matches any year."""
        if said.kind == "time":
            return str(said.value)[:5] in self._moments
        days = [str(value)[:10] for value in said.values]
        return any(day in self._moments or f"*{day[4:] if day[0] != '-' else day[1:]}" in self._moments for day in days)

    @lazy
    def by_path(self) -> dict[Words, list[Fact]]:
        """Facts by the path of their field."""
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
        """Entities of each kind by the month and day of their first date."""
        found: dict[Group, dict[str, list[Entity]]] = {}
        for entity in self.entities:
            day = next((day for fact in entity.own for day in list_days(fact)), None)
            if day is not None and len(self.groups.get(entity.group, ())) > 1:
                found.setdefault(entity.group, {}).setdefault(day[-5:], []).append(entity)
        return found

    def find_of_day(self, quantity: Quantity | None, weekday: str) -> list[Entity]:
        """Return the entities that are the only one of their kind on this day."""
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
        """Return the names with these words that fit only one entity of a kind under one field."""
        by_column: dict[tuple[Group, Words], list[Name]] = {}
        for name in self.names.get(words, ()):
            if len(self.groups.get(name.entity.group, ())) > 1:
                by_column.setdefault((name.entity.group, name.column), []).append(name)
        return [names[0] for names in by_column.values() if len({id(name.entity) for name in names}) == 1]


def list_days(fact: Fact) -> list[str]:
    """Return the dates, with a year, that a fact gives."""
    return [str(held.value)[:10] for held in fact.quantities if held.kind == "date" and str(held.value)[0] != "-"]


def _find_group(record: FactRecord) -> Group:
    if record.collection is not None:
        return ("array", record.collection.path, id(record.collection))
    return ("keys", id(record.above)) if record.above is not None else ()


def _build_keyed(entities: Sequence[Entity]) -> list[Entity]:
    """Build entities of sibling objects that share field names, such as `savings` and `loan`."""
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
        proper = any(c.isupper() or c.isdigit() for c in fact.value) or bool(_NAMING_FIELDS & set(fact.own))
        if len(words) == 1 and (words[0] in _COMMON or _NUMBER.fullmatch(words[0])):
            continue
        if len(words) > 1 or len(words[0]) > 2 or proper:
            column = ("",) if words[0] in WEEKDAYS else fact.path
            yield tuple(words), Name(entity, column, proper, fact)

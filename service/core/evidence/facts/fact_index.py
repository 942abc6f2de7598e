"""Index the facts of a trace's results by field and by value, up to a given message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from service.core.evidence.facts.entities import Holdings
from service.core.evidence.facts.facts import Collection, Fact, read_facts
from service.core.evidence.facts.field_units import MONEY
from service.core.evidence.narration.entities import Family
from service.core.evidence.reading.quantities import Quantity, Value
from service.core.evidence.reading.units import UNITS
from service.core.evidence.reading.words import abbreviates, split_tokens, split_words, stem_name, stem_word
from service.core.trace import Step
from service.core.work_limits import OverBudgetError

DROPPED = split_words("cent usd eur gbp est utc local val iso str text num of the in is at by to on or as an it")
"""Words of field names that prose usually omits."""
_PARTICLES = split_words("out off up per with no not and than for so about all both")
"""Words common in any prose: a field whose name has no others (`out_of`) is never looked up by name."""
GENERIC = split_words("time date day number scheduled current")
"""Words to drop from a field's name if any others remain: the kind of the quantity already implies them."""
_MEASURED = split_words("length mass duration temperature speed volume power energy pressure")
MAX_VALUES_HELD = 40_000
"""Limit on comparisons: each result value counts once for every claim compared with it."""
MAX_WORDS = 2_000
"""Limit on the distinct words in field names; fields beyond it cannot be found by name."""
MIN_ID, MIN_DIGITS = 4, 3
"""Fewest characters, and fewest digits, an identifier needs for its shape to reveal its type."""
_SERIES = frozenset({"value"})
NUMERIC = frozenset({"number", "money", "percent", "measure", "duration"})


@dataclass(slots=True)
class FactGroup:
    """The facts of one field, across all records. `own`: words of its name; `above`: words of the names enclosing it."""

    own: frozenset[str]
    above: frozenset[str]
    facts: list[Fact] = field(default_factory=list[Fact])
    kinds: set[str] = field(default_factory=set[str])
    units: set[str] = field(default_factory=set[str])
    counts_money: bool = False
    """Whether the field's unit says its numbers are amounts in a currency."""

    def is_named_in(self, words: Sequence[str]) -> bool:
        """Whether every word of the field's name stands for one of these words."""
        return all(any(abbreviates(short, word) for word in words) for short in self.own)

    @property
    def is_money(self) -> bool:
        """Whether the field's unit, its name, or the name of an enclosing field says that it is an amount of money."""
        return self.counts_money or bool(MONEY & (self.own | self.above))

    def takes(self, quantity: Quantity) -> bool:
        """Whether values of this field can be compared with a quantity."""
        if quantity.kind == "name":
            return True
        if quantity.kind in NUMERIC:
            return bool(self.kinds & NUMERIC)
        return quantity.kind in self.kinds


class Series(NamedTuple):
    """A field with one value a day. `told`: the words of each text beside it (a title, a unit), by the text's name."""

    group: FactGroup
    told: dict[str, frozenset[str]]


class FactIndex:
    """An index of facts that grows result by result. `inferred`: include facts of inferred structure, which prove nothing."""

    def __init__(self, *, inferred: bool = False) -> None:
        self._inferred = inferred
        self.groups: dict[tuple[str, ...], FactGroup] = {}
        self.values: dict[Value, list[Fact]] = defaultdict(list)
        self.size = 0
        self.collections: list[Collection] = []
        self.tools: dict[int, tuple[str, ...]] = {}
        """Stems of the words in the name of the tool that each step called, by step."""
        self._comparisons = 0
        self._by_word: dict[str, list[FactGroup]] = defaultdict(list)
        self.shapes: dict[str, Fact] = {}
        """One example fact for each identifier shape (`INC-00000`)."""
        self._identifiers: dict[int, dict[str, Fact]] = defaultdict(dict)
        self._families: dict[tuple[int, ...], Family] = {}
        self._holdings: tuple[int, Holdings] | None = None
        self._series: dict[int, Series | None] = {}
        self._counts: dict[tuple[str, ...], FactGroup] = {}

    def look(self, family: Family) -> None:
        """Count the comparison of a claim with these facts; raise OverBudgetError when the total exceeds the limit."""
        self._comparisons += len(family.facts) * (1 if family.is_indexed else 2)
        if self._comparisons > MAX_VALUES_HELD:
            raise OverBudgetError(f"{self._comparisons} values of results held against claims", MAX_VALUES_HELD)

    def add(self, step: Step, described: Mapping[str, str] | None = None) -> None:
        """Add the facts of a step's result. `described`: the descriptions of fields in its tool's schema, by name."""
        if step.result is None or step.result.is_error:
            return
        path = f"/steps/{step.index}/result/content"
        facts, counts, collections = read_facts(
            step.result.content, path, step.index, described, inferred=self._inferred
        )
        tool_words = self.tools[step.index] = tuple(stem_name(step.call.name))
        for collection in collections:
            collection.own = collection.own or tool_words
        self.collections += collections
        self.size += len(facts)
        for fact in facts:
            self._add_to_group(self.groups, fact, tool_words).facts.append(fact)
            for quantity in fact.quantities:
                for value in {*quantity.values, *_drop_year(quantity)}:
                    self.values[value].append(fact)
            self._index_identifier(fact)
        for fact in counts:
            self._add_to_group(self._counts, fact, tool_words).facts.append(fact)

    def _index_identifier(self, fact: Fact) -> None:
        """Index a value that as a whole is an identifier, by its shape and by its length."""
        value = fact.value
        if isinstance(value, str) and MIN_ID <= len(value) <= 64 and (shape := read_shape(value)):
            self.shapes.setdefault(shape, fact)
        if (
            isinstance(value, str)
            and 4 <= len(value) <= 64
            and value.isalnum()
            and not value.isalpha()
            and not value.isdigit()
        ):
            self._identifiers[len(value)].setdefault(value.upper(), fact)

    def find_near(self, identifier: str) -> Fact | None:
        """Return a known identifier that differs in one character or two swapped ones; None if there is none or it is known."""
        identifier = identifier.upper()
        known = self._identifiers.get(len(identifier), {})
        if identifier in known:
            return None
        found = [fact for other, fact in known.items() if _is_one_off(identifier, other)]
        return found[0] if found else None

    def _add_to_group(
        self, groups: dict[tuple[str, ...], FactGroup], fact: Fact, tool_words: tuple[str, ...]
    ) -> FactGroup:
        key = fact.path or tool_words
        group = groups.get(key)
        if group is None:
            own = frozenset(fact.own or tool_words) - DROPPED
            own = own - GENERIC or own
            own = own - {find_unit_word(fact.own)} or own
            group = groups[key] = FactGroup(own, fact.above)
            if groups is self.groups and len(self._by_word) < MAX_WORDS and not group.own <= _PARTICLES:
                for word in group.own:
                    self._by_word[word].append(group)
        for quantity in fact.quantities:
            group.kinds.add(quantity.kind)
            group.units.add(quantity.unit or fact.counted.unit)
        group.counts_money = group.counts_money or bool(fact.counted.currency or fact.counted.minor)
        return group

    def find_named(self, label: Iterable[str], quantity: Quantity) -> list[FactGroup]:
        """Return the fields whose whole name is among the words and whose values can be compared with the quantity."""
        words = set(label)
        heads = {word[0] for word in words if word}
        matched: dict[int, tuple[FactGroup, int]] = {}
        for short, groups in self._by_word.items():
            if short[0] in heads and any(abbreviates(short, word) for word in words):
                for group in groups:
                    seen = matched.get(id(group), (group, 0))
                    matched[id(group)] = (group, seen[1] + 1)
        return [g for g, n in matched.values() if n == len(g.own) and g.takes(quantity)]

    def build_family(self, groups: Sequence[FactGroup]) -> Family:
        """Return the facts of these fields as a family."""
        key = (self.size, *map(id, groups))
        if key not in self._families:
            self._families[key] = Family([fact for group in groups for fact in group.facts])
        return self._families[key]

    def find_group(self, fact: Fact) -> FactGroup | None:
        """Return the field that a fact belongs to."""
        return self.groups.get(fact.path)

    @property
    def holdings(self) -> Holdings:
        """The facts, grouped into entities."""
        if self._holdings is None or self._holdings[0] != self.size:
            facts = [fact for group in self.groups.values() for fact in group.facts]
            self._holdings = self.size, Holdings(facts)
        return self._holdings[1]

    def find_series(self) -> Series | None:
        """Return the field named just `value` in records with a day, and its table's captions; None unless it is the only one."""
        if self.size not in self._series:
            found = [path for path, group in self.groups.items() if group.own == _SERIES and group.facts[0].record.days]
            self._series[self.size] = (
                Series(self.groups[found[0]], self._collect_captions(found[0])) if len(found) == 1 else None
            )
        return self._series[self.size]

    def list_captions(self, fact: Fact) -> Iterable[str]:
        """Return the words in which a table says what the values of its series are; () if the fact is not of the series."""
        series = self.find_series()
        known = series is not None and self.groups.get(fact.path) is series.group
        return [word for words in series.told.values() for word in words] if series is not None and known else ()

    def _collect_captions(self, path: tuple[str, ...]) -> dict[str, frozenset[str]]:
        """Return the words of the texts beside a field, such as its table's title and unit, by the texts' names."""
        beside = [group.facts for place, group in self.groups.items() if place[:-1] == path[:-1]]
        return {
            facts[0].path[-1]: frozenset(stem_word(word) for word in split_tokens(facts[0].value))
            for facts in beside
            if len(facts) == 1 and isinstance(facts[0].value, str)
        }

    @property
    def has_one_amount(self) -> bool:
        """Whether the results hold exactly one amount of money."""
        amounts = [fact for group in self.groups.values() if group.is_money for fact in group.facts[:2]]
        return len(amounts) == 1

    def find_counts(self, label: Iterable[str]) -> list[Fact]:
        """Return the lengths of the arrays whose whole name is among the words."""
        words = set(label)
        return [fact for group in self._counts.values() if group.own and group.own <= words for fact in group.facts]

    def find_holding(self, value: Value) -> list[Fact]:
        """Return the facts with this value, whatever their field."""
        return self.values.get(value, [])


def read_shape(text: str) -> str:
    """Return the shape that identifiers of one type share: the text with each digit as 0; "" if it is no telling shape.

    >>> read_shape("INC-30371"), read_shape("P-112"), read_shape("30 Main St"), read_shape("42")
    ('INC-00000', 'P-000', '', '')
    """
    digits = sum(c.isdigit() for c in text)
    if " " in text or digits < MIN_DIGITS or not any(c.isalpha() for c in text):
        return ""
    return "".join("0" if c.isdigit() else c for c in text.upper())


def find_unit_word(own: Sequence[str]) -> str:
    """Return the unit at the end of a field's name, such as `km` in distance_km; "" if there is none."""
    last = own[-1] if own[1:] else ""
    return last if last in UNITS and UNITS[last].dimension in _MEASURED and len(last) != 1 else ""


def _drop_year(quantity: Quantity) -> Iterable[Value]:
    return [f"--{str(value)[-5:]}" for value in quantity.values] if quantity.kind == "date" else ()


def _is_one_off(one: str, other: str) -> bool:
    apart = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    swapped = len(apart) == 2 and apart[0] == apart[1][::-1]
    return (len(apart) == 1 or swapped) and all(a.isdigit() == b.isdigit() for a, b in apart)

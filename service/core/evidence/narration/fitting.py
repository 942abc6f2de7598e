"""Decide whether an entity holds what a clause mentions, with one check for each kind of value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from service.core.evidence.arithmetic.holding import read_number
from service.core.evidence.arithmetic.transforms import is_other_unit, relate
from service.core.evidence.facts.entities import MAX_INSIDE, Entity, Holdings, Words, list_days, read_flag
from service.core.evidence.facts.facts import Fact
from service.core.evidence.facts.field_units import MONEY
from service.core.evidence.reading.dates import name_weekday
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.units import UNITS
from service.core.evidence.reading.words import find_root, split_tokens, split_words, stem_word
from service.core.evidence.sentences.claims import ABOUT, LINKS
from service.core.evidence.sentences.mentions import Clause, ClauseMention, find_words

_COUNTS = split_words("count number quantity qty four digit id")
"""Words in the name of a field that make it a count, whatever else the name says: `total_count`."""
MAX_TYPED = 120
_FARTHEST = 1000
"""Largest factor between two units in which the same value is ever given."""
_SMALL = split_words("and or in on at with for of to by from is are was were")


class Fitting(NamedTuple):
    """Whether an entity holds what is said; None if it holds nothing of that kind.

    `facts`: the facts that match or, where none does, the ones it was compared with.
    """

    holds: bool | None
    facts: tuple[Fact, ...] = ()
    how: str = "words"
    """The transform that turns the fact into what is said."""
    named: bool = False
    """Whether the text names the field beside the number."""


NOTHING = Fitting(None)


def fit(mention: ClauseMention, clause: Clause, entity: Entity) -> Fitting:
    """Decide whether an entity, or what contains it, holds what is mentioned."""
    facts = list(chain(entity.inside[:MAX_INSIDE], islice(entity.iter_around(), MAX_INSIDE)))
    if mention.flag is not None:
        held = [fact for fact in facts if fact.path in mention.columns and read_flag(fact) is not None]
        return _build(held, [fact for fact in held if read_flag(fact) is mention.flag])
    if mention.words:
        return _fit_text(mention, facts)
    if mention.weekday:
        held = [fact for fact in facts if list_days(fact)]
        fitting = [f for f in held if any(name_weekday(day) == mention.weekday for day in list_days(f))]
        return _build(held, fitting)
    if mention.quantity is None or mention.quantity.kind in ("boolean", "identifier", "name"):
        return NOTHING
    found = _fit_quantity(mention.quantity, clause, facts, mention.head)
    return found._replace(how=_name_way(mention.quantity, found.facts[0], clause)) if found.holds else found


def _build(held: Sequence[Fact], fitting: Sequence[Fact]) -> Fitting:
    if fitting:
        return Fitting(True, tuple(fitting))
    return Fitting(False, tuple(held)) if held else NOTHING


def _fit_text(mention: ClauseMention, facts: Sequence[Fact]) -> Fitting:
    held = [fact for fact in facts if fact.path in mention.columns and isinstance(fact.value, str)]
    return _build(held, [fact for fact in held if _contains(tuple(split_tokens(str(fact.value))), mention.words)])


def _contains(held: Words, words: Words) -> bool:
    return any(held[at : at + len(words)] == words for at in range(len(held) - len(words) + 1))


def _fit_quantity(said: Quantity, clause: Clause, facts: Sequence[Fact], head: Words) -> Fitting:
    comparable = [fact for fact in facts if is_of_kind(said, fact)]
    if said.kind == "number":
        named = _list_called(head, comparable) or list_named(said, clause, comparable)
        found = _build(named, [fact for fact in named or comparable if relates(said, fact, clause)])
        return found._replace(named=bool(named))
    return _build([f for f in comparable if is_typed(said, f)], [f for f in comparable if relates(said, f, clause)])


def list_named(said: Quantity, clause: Clause, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts of the field named right after a number or, if nothing is named there, right before it."""
    at = said.start - clause.start
    after = split_tokens(clause.text[at + len(said.text) :])[:2]
    named = _list_called(after, facts)
    if named or (after and after[0] not in _SMALL):
        return named
    return _list_called([word for word in split_tokens(clause.text[:at]) if word not in LINKS][-2:], facts)


def _list_called(words: Sequence[str], facts: Sequence[Fact]) -> list[Fact]:
    roots = {find_root(stem_word(word)) for word in words}
    return [fact for fact in facts if not roots.isdisjoint(map(find_root, fact.own))]


def is_of_kind(said: Quantity, fact: Fact) -> bool:
    """Whether a fact's values are comparable with a quantity."""
    kinds = {held.kind for held in fact.quantities}
    if said.kind in ("date", "time"):
        return said.kind in kinds
    if not kinds & {"number", "money", "percent", "measure", "duration"}:
        return False
    unit = fact.counted.unit
    if said.kind == "money":
        return "money" in kinds or ("number" in kinds and not unit)
    if said.kind == "percent":
        return "percent" in kinds or unit in ("", "%")
    if said.kind in ("measure", "duration"):
        units = {unit, *(held.unit for held in fact.quantities)}
        dimension = UNITS[said.unit].dimension
        return any(UNITS[name].dimension == dimension for name in units if name in UNITS) or units == {""}
    return True


def is_typed(said: Quantity, fact: Fact) -> bool:
    """Whether a fact's own unit or name says that it is of a quantity's kind."""
    if said.kind in ("date", "time"):
        return True
    kinds = {held.kind for held in fact.quantities}
    if said.kind == "money":
        counted = fact.counted.currency or fact.counted.minor
        named = MONEY & {*fact.own, *fact.above} and not _COUNTS & {*fact.own}
        return bool(counted) or "money" in kinds or bool(named)
    if said.kind == "percent":
        ratio = isinstance(fact.value, float) and 0 < abs(fact.value) < 1 and not fact.counted.unit
        return "percent" in kinds or fact.counted.unit == "%" or ratio
    return (bool(fact.counted.unit) or said.kind in kinds) and _is_of_scale(said, fact)


def _is_of_scale(said: Quantity, fact: Fact) -> bool:
    """Whether a value in the fact's unit could be given in the unit said: nobody gives days in minutes."""
    mine, own = UNITS.get(said.unit), UNITS.get(fact.counted.unit)
    return not (mine and own) or max(mine.factor / own.factor, own.factor / mine.factor) <= _FARTHEST


def list_typed(said: Quantity, holdings: Holdings) -> list[Fact]:
    """Return the first facts whose own unit or name says that they are of a quantity's kind."""
    typed = (fact for fact in holdings.facts if is_of_kind(said, fact) and is_typed(said, fact))
    return holdings.once((list_typed, said.kind, said.unit), lambda: [*islice(typed, MAX_TYPED)])


def list_typed_numbers(said: Quantity, holdings: Holdings) -> list[tuple[Fact, Decimal]]:
    """Return the facts of `list_typed` that hold one number, each with this number in the terms of the quantity."""
    typed = list_typed(said, holdings)
    return holdings.once(
        (list_typed_numbers, said.kind, said.unit),
        lambda: [(fact, number) for fact in typed if (number := read_number(said, fact)) is not None],
    )


def relates(said: Quantity, fact: Fact, clause: Clause) -> bool:
    """Whether what is said is one way to give the fact."""
    about = is_rough(said, clause)
    words = find_words(clause.text)
    return any(relate(said, fact, held, about=about, words=words) for held in fact.quantities)


def _name_way(said: Quantity, fact: Fact, clause: Clause) -> str:
    about, words = is_rough(said, clause), find_words(clause.text)
    return next(
        (how for held in fact.quantities if (how := relate(said, fact, held, about=about, words=words))), "same"
    )


def is_rough(said: Quantity, clause: Clause) -> bool:
    """Whether a number is approximate: `about 5`, `just 5`, `~5`."""
    at = max(0, said.start - clause.sentence_start)
    return _leads_roughly(clause.sentence[max(0, at - 40) : at])


@lru_cache(maxsize=1024)  # a sentence full of numbers is asked about for each of them
def _leads_roughly(before: str) -> bool:
    words = split_tokens(before)
    return bool(ABOUT & {*words[-3:]}) or words[-2:-1] == ["just"] or before.endswith("~")


def find_other_unit(said: Quantity, facts: Iterable[Fact]) -> Fact | None:
    """Return a fact with the number that is said, but in another unit."""
    return next((fact for fact in facts if is_other_unit(said, fact)), None)

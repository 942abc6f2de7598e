"""Whether an entity holds what a clause mentions: one reader for each kind of value."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, combinations, islice
from typing import NamedTuple

from service.core.evidence.narration.claims import ABOUT, LINKS, MADE
from service.core.evidence.narration.clauses import Clause, ClauseMention, find_words
from service.core.evidence.narration.facts import Fact
from service.core.evidence.narration.field_units import MONEY
from service.core.evidence.narration.held import MAX_INSIDE, Entity, Words, list_days, name_weekday
from service.core.evidence.narration.holding import DIFFERENCE, SUM, read_number
from service.core.evidence.narration.transforms import is_other_unit, relate
from service.core.evidence.reading.quantities import Quantity, list_significant_digits
from service.core.evidence.reading.units import UNITS
from service.core.evidence.reading.words import split_tokens, split_words, stem_word

_SMALL = split_words("and or in on at with for of to by from is are was were")
MAX_TIMES = 12
_ASKING = SUM | DIFFERENCE | MADE
_OF_TWO = split_words("both together plus")
_FEW = 10
_TELLING = 3
"""More digits than these are no chance result of a difference or a sum."""
MAX_POOL = 60
"""Values of which sums and differences are tried."""


class Fitting(NamedTuple):
    """Whether an entity holds what is said: None where it holds nothing of the sort. `facts` it could be, or is."""

    holds: bool | None
    facts: tuple[Fact, ...] = ()
    how: str = "words"
    """By which way of saying it."""
    named: bool = False
    """Whether a number's field is named beside it."""


NOTHING = Fitting(None)


def fit(mention: ClauseMention, clause: Clause, entity: Entity) -> Fitting:
    """Whether an entity, or what it is in, holds what is mentioned."""
    facts = list(chain(entity.inside[:MAX_INSIDE], islice(entity.iter_around(), MAX_INSIDE)))
    if mention.flag is not None:
        held = [fact for fact in facts if fact.path in mention.columns and isinstance(fact.value, bool)]
        return _build(held, [fact for fact in held if fact.value is mention.flag])
    if mention.words:
        return _fit_text(mention, facts)
    if mention.weekday:
        held = [fact for fact in facts if list_days(fact)]
        fitting = [f for f in held if any(name_weekday(day) == mention.weekday for day in list_days(f))]
        return _build(held, fitting)
    if mention.quantity is None or mention.quantity.kind in ("boolean", "identifier", "name"):
        return NOTHING
    found = _fit_quantity(mention.quantity, clause, facts)
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


def _fit_quantity(said: Quantity, clause: Clause, facts: Sequence[Fact]) -> Fitting:
    comparable = [fact for fact in facts if is_of_kind(said, fact)]
    if said.kind == "number":
        named = _list_named(said, clause, comparable)
        found = _build(named, [fact for fact in named or comparable if relates(said, fact, clause)])
        return found._replace(named=bool(named))
    return _build([f for f in comparable if is_typed(said, f)], [f for f in comparable if relates(said, f, clause)])


def _list_named(said: Quantity, clause: Clause, facts: Sequence[Fact]) -> list[Fact]:
    """The facts of the field that is named right behind a number, or, where nothing is, right before it."""
    at = said.start - clause.start
    after = [stem_word(word) for word in split_tokens(clause.text[at + len(said.text) :])[:2]]
    named = [fact for fact in facts if fact.own and {*after} & {*fact.own}]
    if named or (after and after[0] not in _SMALL):
        return named
    before = [stem_word(word) for word in split_tokens(clause.text[:at]) if word not in LINKS][-2:]
    return [fact for fact in facts if fact.own and {*before} & {*fact.own}]


def is_of_kind(said: Quantity, fact: Fact) -> bool:
    """Whether a fact's values can be held against a quantity."""
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
        return any(UNITS[one].dimension == dimension for one in units if one in UNITS) or units == {""}
    return True


def is_typed(said: Quantity, fact: Fact) -> bool:
    """Whether a fact's own unit or name says that it is of the kind."""
    if said.kind in ("date", "time"):
        return True
    kinds = {held.kind for held in fact.quantities}
    if said.kind == "money":
        counted = fact.counted.currency or fact.counted.minor
        return bool(counted) or "money" in kinds or bool(MONEY & {*fact.own, *fact.above})
    if said.kind == "percent":
        ratio = isinstance(fact.value, float) and 0 < abs(fact.value) < 1 and not fact.counted.unit
        return "percent" in kinds or fact.counted.unit == "%" or ratio
    return bool(fact.counted.unit) or said.kind in kinds


def relates(said: Quantity, fact: Fact, clause: Clause) -> bool:
    """Whether a fact can be said so."""
    about = is_rough(said, clause)
    words = find_words(clause.text)
    return any(relate(said, fact, held, about=about, words=words) for held in fact.quantities)


def _name_way(said: Quantity, fact: Fact, clause: Clause) -> str:
    about, words = is_rough(said, clause), find_words(clause.text)
    return next(
        (how for held in fact.quantities if (how := relate(said, fact, held, about=about, words=words))), "same"
    )


def is_rough(said: Quantity, clause: Clause) -> bool:
    """Whether a number is said roughly."""
    at = max(0, said.start - clause.sentence_start)
    before = clause.sentence[max(0, at - 40) : at]
    return bool(ABOUT & {*split_tokens(before)[-3:]}) or before.endswith("~")


def find_other_unit(said: Quantity, facts: Iterable[Fact]) -> Fact | None:
    """A fact with the number that was said, in another unit."""
    return next((fact for fact in facts if is_other_unit(said, fact)), None)


def asks_difference(mention: ClauseMention, clause: Clause) -> bool:
    """Whether what is said is how far two values are apart: `$5 cheaper`, `exceeds it by $5`."""
    at = mention.end - clause.sentence_start
    after = split_tokens(clause.sentence[at : at + 30])[:2]
    before = split_tokens(
        clause.sentence[max(0, mention.start - clause.sentence_start - 25) : mention.start - clause.sentence_start]
    )
    first = after[0] if after else ""
    comparative = first.endswith("er") and first not in _NO_COMPARATIVES and len(first) > 4
    return (
        comparative
        or first in ("more", "less", "fewer", "ahead", "apart", "behind")
        or (
            before[-1:] == ["by"]
            and bool({"exceed", "exceeds", "lead", "leads", "won", "win", "beat", "ahead"} & {*before})
        )
    )


_NO_COMPARATIVES = split_words(
    "after other under over per number order water either whether user offer never later member paper power center former "
    "together altogether another rather however september october november december summer winter dinner letter server "
    "printer transfer weather quarter customer player passenger folder computer"
)
"""Words that end as comparatives do."""


def asks_sum(clause: Clause) -> bool:
    """Whether a clause speaks of a total."""
    return bool(SUM - {"all", "both", "overall"} & find_words(clause.sentence))


class Workings:
    """What comes of adding and subtracting some facts, in the terms of a claim."""

    def __init__(self, said: Quantity, pool: Iterable[Fact]) -> None:
        held = list(islice(((value, fact) for fact in pool if (value := read_number(said, fact))), MAX_POOL))
        pairs = [(a, b) for (a, one), (b, other) in combinations(held, 2) if _go_together(said, one, other)]
        self.values = [value for value, _ in held]
        self.apart = sorted({abs(a - b) for a, b in pairs})
        self.pairs = sorted({a + b for a, b in pairs})
        self.totals = sorted({sum(each, Decimal(0)) for each in _list_columns(held)})

    def give(self, said: Quantity, clause: Clause, *, apart: bool) -> bool:
        """Whether a number is a sum or (`apart`: only this) a difference."""
        number = said.number
        if number is None:
            return False
        room = _measure_room(said, clause, number)
        words = find_words(clause.sentence)
        asked = bool(_ASKING & words) or len(list_significant_digits(number)) > _TELLING
        total = asks_sum(clause) and not (DIFFERENCE | _OF_TWO) & words
        if (apart or (asked and not total)) and _has_near(self.apart, abs(number), room):
            return True
        if apart:
            return False
        times = [Decimal(word) for word in words if word.isdecimal() and len(word) < 3] if said.kind == "money" else []
        if any(value * n == number for n in times[:MAX_TIMES] if n > 1 for value in self.values):
            return True
        return _has_near(self.totals, number, room) or (asked and not total and _has_near(self.pairs, number, room))


def _has_near(ordered: Sequence[Decimal], number: Decimal, room: Decimal) -> bool:
    at = bisect_left(ordered, number - room)
    return at < len(ordered) and ordered[at] <= number + room


def asks_arithmetic(clause: Clause) -> bool:
    """Whether words of a sentence speak of what is worked out."""
    return bool(_ASKING & find_words(clause.sentence))


def is_made_of(said: Quantity, known: Sequence[Decimal]) -> bool:
    """Whether an amount is the sum, the difference or a multiple of numbers that stand before it."""
    number = said.number
    if number is None or said.kind not in ("money", "number"):
        return False
    held = {*known}
    if any(number - one in held or number + one in held for one in held if one not in (number, number / 2)):
        return True
    few = known[-_FEW:]
    return any(sum(few[n:]) == number for n in range(len(few) - 2)) or any(
        number != one and number % one == 0 and number / one < _FEW for one in few
    )


def _go_together(said: Quantity, one: Fact, other: Fact) -> bool:
    """Whether two facts may be added: they stand side by side, or both are of the kind."""
    beside = one.path[:-1] == other.path[:-1] or (len(one.path) > 1 and one.path[:-2] == other.path[:-2])
    return beside or (is_typed(said, one) and is_typed(said, other))


def _list_columns(held: Sequence[tuple[Decimal, Fact]]) -> Iterator[list[Decimal]]:
    columns: dict[Words, list[Decimal]] = {}
    records: dict[tuple[int, Words], list[Decimal]] = {}
    for value, fact in held:
        columns.setdefault(fact.path, []).append(value)
        records.setdefault((id(fact.record), fact.path[:-1]), []).append(value)
    yield from (each for each in (*columns.values(), *records.values()) if len(each) > 1)


def _measure_room(said: Quantity, clause: Clause, number: Decimal) -> Decimal:
    return abs(number) / 10 if is_rough(said, clause) else Decimal(1).scaleb(-max(said.places, 0)) / 2

"""What may be worked out from the numbers that are held and told: sums, differences, multiples, means and shares."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, combinations, islice, permutations, product
from typing import NamedTuple

from service.core.evidence.arithmetic.holding import DIFFERENCE, SUM, read_number
from service.core.evidence.arithmetic.transforms import name_slip
from service.core.evidence.facts.facts import Fact
from service.core.evidence.facts.held import MAX_INSIDE, Entity, Holdings, Words
from service.core.evidence.narration.fitting import is_of_kind, is_rough, is_typed
from service.core.evidence.reading.quantities import Quantity, list_significant_digits
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.evidence.sentences.claims import MADE, MAX_BESIDE
from service.core.evidence.sentences.mentions import Clause, ClauseMention, find_words
from service.core.models.lazy import lazy

_CHANGED = split_words("by up down rose fell grew dropped")
_ASKING = SUM | DIFFERENCE | MADE | _CHANGED - {"by"} | split_words("gained lost added gains loses drops adds")
_OF_TWO = split_words("both together plus")
_TAKEN = _OF_TWO | split_words("twice half double triple times quarter third")
_MEANS = split_words("average averages averaged averaging mean typical typically")
_TELLING = 2
"""More digits than these are no chance result of others."""
_SHARED_OUT = split_words("per each every apiece average averages averaged averaging mean person people head")
"""Words that share a number out."""
MAX_POOL, MAX_VALUES, MAX_SHARED = 60, 400, 40
"""Values that are added to and taken from each other; that are compared at all; of which shares are taken."""
_FINE = Decimal("0.01")
"""Of numbers with so little room few are the difference of others by chance."""
MAX_FACTORS, MAX_TOTALS = 12, 20
"""Numbers of one record, and totals, that others are multiplied with and divided by."""
_OF_WHOLE = split_words(
    "of more less higher lower cheaper dearer above below used left full taken sold booked done complete"
)
_WHOLE = re.compile(r"\d (?:out )?of (?:the )?\d")
MAX_TIMES = 100
"""A number of things by which an amount is multiplied."""
_FEW = 10
MAX_SIGNED = 4
MAX_PICKED = 8
"""Values of a column of which any may be meant by a sum."""
PASSAGE = 600
"""Characters before a number in which entities are named whose values it may add up."""
_NO_COMPARATIVES = split_words(
    "after other under over per number order water either whether user offer never later member paper power center former "
    "together altogether another rather however september october november december summer winter dinner letter server "
    "printer transfer weather quarter customer player passenger folder computer"
)
"""Words that end as comparatives do."""
_APART = split_words("more less fewer ahead apart behind below above up down short over under")
_LEADS = split_words("exceed exceeds lead leads won win beat ahead")


def asks_difference(mention: ClauseMention, clause: Clause) -> bool:
    """Whether what is said is how far two values are apart: `$5 cheaper`, `exceeds it by $5`."""
    at, end = mention.start - clause.sentence_start, mention.end - clause.sentence_start
    first = next(iter(split_tokens(clause.sentence[end : end + 30])), "")
    before = split_tokens(clause.sentence[max(0, at - 25) : at])
    comparative = first.endswith("er") and first not in _NO_COMPARATIVES and len(first) > 4
    return comparative or first in _APART or (before[-1:] == ["by"] and bool(_LEADS & {*before}))


def asks_sum(clause: Clause) -> bool:
    """Whether a clause speaks of a total."""
    return bool(SUM - {"all", "both", "overall"} & find_words(clause.sentence))


def asks_arithmetic(clause: Clause) -> bool:
    """Whether words of a sentence speak of what is worked out."""
    return bool(_ASKING & find_words(clause.sentence))


def is_worked_out(clause: Clause) -> bool:
    """Whether words of a clause do."""
    return bool(_ASKING & find_words(clause.text))


class _Pool:
    """The numbers of results in the terms of a claim, and what comes of adding and subtracting them."""

    def __init__(self, said: Quantity, facts: Iterable[Fact]) -> None:
        held = list(islice(((value, fact) for fact in facts if (value := read_number(said, fact))), MAX_VALUES))
        self.values = sorted({value for value, _ in held})
        few = held[:MAX_POOL]
        pairs = [(a, b) for (a, one), (b, other) in combinations(few, 2) if _go_together(said, one, other)]
        self.apart = sorted({abs(a - b) for a, b in pairs})
        self.pairs = sorted({a + b for a, b in pairs})
        columns = list(_list_columns(few))
        self.totals = sorted({sum(each, Decimal(0)) for each in columns})
        self.columns = columns
        self.means = sorted({sum(each, Decimal(0)) / len(each) for each in columns})
        self._few = few

    @lazy
    def parts(self) -> list[Decimal]:
        """The sums of some of the values of short columns: those that words pick out."""
        short = [each for each in self.columns if len(each) <= MAX_PICKED]
        return sorted(
            {sum(some, Decimal(0)) for each in short for n in range(2, len(each)) for some in combinations(each, n)}
        )

    @lazy
    def made(self) -> list[Decimal]:
        """What else comes of a value and the numbers beside it, taken so many times or shared out, and of totals."""
        found = {*self.apart, *self.pairs, *self.totals, *self.parts}
        for value, fact in self._few:
            for n in _list_factors(fact):
                found |= {value * n, value / n, value * n / 100, value - value * n / 100}
        totals = self.totals[:MAX_TOTALS]
        found |= {a / b for a, b in permutations(totals, 2) if b} | {
            abs(total - value) for total in totals for value in (*totals, *self.values[:MAX_POOL])
        }
        return sorted(found)

    def is_apart(self, number: Decimal, room: Decimal) -> bool:
        """Whether two of many values lie so far apart."""
        return any(_has_near(self.values, value + number, room) for value in self.values)


class _Sought(NamedTuple):
    """A number that may be worked out, how far off it may be, its clause, and the numbers that it may come of."""

    number: Decimal
    room: Decimal
    clause: Clause
    pools: Sequence[_Pool]
    told: Sequence[Decimal]

    @property
    def is_telling(self) -> bool:
        """Whether it has too many digits to be a chance result."""
        return len(list_significant_digits(self.number)) > _TELLING

    @property
    def words(self) -> frozenset[str]:
        """Those of its sentence."""
        return find_words(self.clause.sentence)

    @property
    def is_asked_total(self) -> bool:
        """Whether words ask for a total, and not of two."""
        return asks_sum(self.clause) and not (DIFFERENCE | _OF_TWO) & self.words

    def is_in(self, values: Sequence[Decimal]) -> bool:
        """Whether one of sorted values is it."""
        return _has_near(values, self.number, self.room)


class Workings:
    """What comes of the numbers that results hold and a text tells."""

    def __init__(
        self,
        holdings: Holdings,
        quantities: Sequence[Quantity],
        clauses: Sequence[Clause],
        heard: Sequence[Quantity] = (),
    ) -> None:
        self._holdings = holdings
        self._heard = heard
        self._quantities = quantities
        self._starts = [one.start for one in quantities]
        self._naming = [one for one in clauses if one.sight == "here"]
        self._places = [one.start for one in self._naming]

    def give(self, said: Quantity, clause: Clause, *, apart: bool) -> bool:
        """Whether a number comes of others. `apart`: as a difference, by its words."""
        number = said.number
        if number is None:
            return False
        if said.kind == "percent":
            return self._is_share(said, number, clause)
        pools = [self._find_pool(said), *self._list_own_pools(said, clause)]
        sought = _Sought(number, _measure_room(said, clause, number), clause, pools, self._list_told(said, clause))
        if (apart or not sought.is_asked_total) and self._is_difference(sought, apart=apart):
            return True
        if apart:
            return False
        if self._is_total(sought) or sought.is_in(sorted(self._iter_named_sums(said, clause))):
            return True
        open_to = sought.is_telling or bool((_SHARED_OUT | _TAKEN) & sought.words)
        return self._is_multiple(sought, open_to=open_to) or (
            open_to and any(sought.is_in(pool.made) for pool in pools)
        )

    def is_near(self, said: Quantity, clause: Clause) -> bool:
        """Whether a number is nearly what its words ask to be worked out: a total, a difference."""
        number = said.number
        if number is None:
            return False
        if not (asks_sum(clause) or asks_arithmetic(clause)):
            return False
        told = self._list_told(said, clause)[-_FEW:]
        pools = [self._find_pool(said), *self._list_own_pools(said, clause)]
        if asks_sum(clause):
            made = [
                *chain(*(pool.totals for pool in pools)),
                sum(told, Decimal(0)),
                *(a + b for a, b in combinations(told, 2)),
            ]
        else:
            apart = [pool.apart for pool in pools if len(pool.values) <= _FEW]
            made = [*chain(*apart), *(abs(a - b) for a, b in combinations(told, 2))]
        return any(name_slip(number, one) != "wrong_value" for one in made)

    def _find_pool(self, said: Quantity) -> _Pool:
        """The numbers of all results, which many texts may be held against."""
        facts = self._holdings.facts
        return self._holdings.once(
            (_Pool, said.kind, said.unit), lambda: _Pool(said, (fact for fact in facts if is_of_kind(said, fact)))
        )

    def _list_own_pools(self, said: Quantity, clause: Clause) -> list[_Pool]:
        facts = [fact for entity in clause.subjects for fact in entity.inside[:MAX_INSIDE] if is_of_kind(said, fact)]
        return [_Pool(said, facts)] if 1 < len(facts) < len(self._holdings.facts) else []

    def _list_told(self, said: Quantity, clause: Clause) -> list[Decimal]:
        """The numbers of its kind that stand before one, or else in its sentence; for those said roughly what is held too."""
        at = bisect_left(self._starts, said.start)
        end = clause.sentence_start + len(clause.sentence)
        near = [*self._quantities[max(0, at - MAX_BESIDE) : at]]
        near += [one for one in self._quantities[at + 1 : at + MAX_BESIDE] if one.start < end]
        near += [one for one in self._heard if one.kind == said.kind]
        near = [one for one in near if one.kind in (said.kind, "number", "money") and one.number]
        rough = [one.number for one in near if one.start >= clause.sentence_start and is_rough(one, clause)]
        behind = [
            value for value in self._find_pool(said).values for one in rough if one and abs(value - one) <= one / 20
        ]
        return [*behind, *[one.number for one in near if one.number]]

    def _is_difference(self, sought: _Sought, *, apart: bool) -> bool:
        _, room, clause, pools, told = sought
        size, asked, telling = abs(sought.number), apart or asks_arithmetic(clause), sought.is_telling
        if (asked or telling) and any(_has_near(pool.apart, size, room) for pool in pools):
            return True
        if (asked or telling) and _are_apart(told, [*told, *pools[0].totals], size, room):
            return True
        heard = [one.number for one in self._heard if one.number]
        if asked and _are_apart(heard, pools[0].values, size, room):
            return True
        fine = telling or room < _FINE
        return (
            asked and fine and (_are_apart(told, pools[0].values, size, room) or pools[0].is_apart(size, room))
        ) or (asked and _are_apart(pools[0].totals, pools[0].values, size, room))

    def _is_total(self, sought: _Sought) -> bool:
        number, room, clause, pools, told = sought
        asked = bool(_ASKING & sought.words) or sought.is_telling or bool(_WHOLE.search(clause.text))
        if any(sought.is_in(pool.totals) for pool in pools):
            return True
        if _MEANS & sought.words and any(sought.is_in(pool.means) for pool in pools):
            return True
        if asked and not sought.is_asked_total and any(sought.is_in(pool.pairs) for pool in pools):
            return True
        if asked and any(sought.is_in(pool.parts) for pool in pools):
            return True
        few = told[-_FEW:]
        return (
            _have_sum(few, number, room)
            or any(abs(sum(few[n:]) - number) <= room for n in range(len(few) - 2))
            or (asked and sought.is_in(_list_signed(few[-MAX_SIGNED:])))
        )

    def _is_multiple(self, sought: _Sought, *, open_to: bool) -> bool:
        """So many times a value, or one shared out among so many, or so many percent of it, by numbers of the sentence."""
        number, room, clause, pools, told = sought
        counts = self._list_counts(clause, ("number", "measure", "duration"))
        times = [
            each for each in counts if 1 < each <= MAX_TIMES and each == each.to_integral_value() and each != number
        ]
        shares = [each / 100 for each in self._list_counts(clause, ("percent",)) if 0 < each < 100]
        values = {*told, *chain.from_iterable(pool.values[:MAX_POOL] for pool in pools)} - {number}
        factors = [*times, *shares, *(1 - each for each in shares), *([1 / each for each in times] if open_to else [])]
        if any(abs(value * n - number) <= room for n in factors for value in values):
            return True
        return open_to and any(
            number % value == 0 and number / value < _FEW for value in told[-_FEW:] if value not in (0, number)
        )

    def is_factor(self, said: Quantity, clause: Clause) -> bool:
        """Whether a number tells how often an amount is taken that stands behind it: `four seats come to $204`."""
        number = said.number
        if number is None or not 1 < number <= MAX_TIMES:
            return False
        end = clause.sentence_start + len(clause.sentence)
        near = self._quantities[bisect_left(self._starts, said.end) :][:MAX_BESIDE]
        return any(
            _has_near(self._find_pool(one).values, one.number / number, _measure_room(one, clause, one.number) / number)
            for one in near
            if one.start < end and one.kind == "money" and one.number
        )

    def _list_counts(self, clause: Clause, kinds: Sequence[str]) -> list[Decimal]:
        end = clause.sentence_start + len(clause.sentence)
        near = self._quantities[bisect_left(self._starts, clause.sentence_start) :][:MAX_BESIDE]
        return [one.number for one in near if one.start < end and one.kind in kinds and one.number is not None]

    def _iter_named_sums(self, said: Quantity, clause: Clause) -> Iterator[Decimal]:
        """What the entities named shortly before hold of one field, added up: the legs of a journey."""
        at = bisect_left(self._places, clause.end)
        near = [one for one in self._naming[max(0, at - 4) : at] if one.start > clause.start - PASSAGE]
        columns = [_read_fields(said, one.subjects) for one in near]
        for n in range(len(columns) - 1):
            for path in set(columns[n]).intersection(*columns[n + 1 :]):
                yield from (sum(each, Decimal(0)) for each in islice(product(*(one[path] for one in columns[n:])), 64))

    def _is_share(self, said: Quantity, number: Decimal, clause: Clause) -> bool:
        """A part of a whole, or a change: of what is told, of whom the clause speaks, and, where none is, of all."""
        end = clause.sentence_start + len(clause.sentence)
        at = bisect_left(self._starts, said.start)
        told = [q for q in self._quantities[max(0, at - MAX_BESIDE) : at + MAX_BESIDE] if q.start < end]
        room = _measure_room(said, clause, number)
        near = [q for q in told if q.start >= clause.sentence_start]
        kinds = {(q.kind, q.unit): q for q in near if q.number and q.kind in ("money", "measure", "duration")}
        if any(q.kind == "number" for q in near):
            kinds["number", ""] = said._replace(kind="number")
        if any(self._has_share(q, told, clause, number, room, beside=True) for q in kinds.values()):
            return True
        if not _asks_share(said, clause):
            return False
        kinds["money", "?"] = said._replace(kind="money", unit="?")
        kinds["number", ""] = said._replace(kind="number")
        return self._is_change(said, number, room, clause) or any(
            self._has_share(q, told, clause, number, room, beside=False) for q in kinds.values()
        )

    def _is_change(self, said: Quantity, number: Decimal, room: Decimal, clause: Clause) -> bool:
        """From one value of a short column to another: `gone up by 25 %`."""
        columns = (
            self._find_pool(said._replace(kind="money", unit="?")).columns
            + self._find_pool(said._replace(kind="number", unit="")).columns
        )
        return bool(_CHANGED & find_words(clause.sentence)) and any(
            abs(abs(100 - 100 * a / b) - abs(number)) <= room
            for each in columns
            if len(each) <= MAX_PICKED
            for a, b in permutations(each, 2)
            if b
        )

    def _has_share(
        self, like: Quantity, told: Sequence[Quantity], clause: Clause, number: Decimal, room: Decimal, *, beside: bool
    ) -> bool:
        """Whether it is the share of two numbers. `beside`: of two that are told."""
        facts = [fact for entity in clause.subjects for fact in entity.own if is_of_kind(like, fact)]
        if not clause.subjects:
            alone = (one for one in self._holdings.entities if one.collection is None)
            facts = [fact for one in islice(alone, MAX_SHARED) for fact in one.own if is_of_kind(like, fact)]
        held = [value for fact in facts[:MAX_SHARED] if is_typed(like, fact) and (value := read_number(like, fact))]
        said = {abs(q.number) for q in told if q.kind == like.kind and q.number}
        held += self._find_pool(like).totals[:MAX_SHARED]
        wholes = [abs(value) for value in dict.fromkeys([*held, *said])]
        return any(
            abs(share - abs(number)) <= room
            for a, b in product(wholes, wholes)
            if a != b and not (beside and not said.issuperset((a, b)))
            for share in (100 * a / b, abs(100 - 100 * a / b))
        )


def _asks_share(said: Quantity, clause: Clause) -> bool:
    at, end = said.start - clause.sentence_start, said.end - clause.sentence_start
    after, before = (
        split_tokens(clause.sentence[end : end + 20])[:1],
        split_tokens(clause.sentence[max(0, at - 20) : at]),
    )
    return bool(
        _OF_WHOLE & {*after}
        or _CHANGED & {*before[-1:]}
        or "of" in clause.words
        or clause.sentence.lstrip()[:3] == "Of "
    )


def _read_fields(said: Quantity, entities: Sequence[Entity]) -> dict[Words, set[Decimal]]:
    found: dict[Words, set[Decimal]] = {}
    for entity in entities:
        for fact in entity.inside[:MAX_POOL]:
            value = read_number(said, fact) if is_of_kind(said, fact) else None
            if value is not None:
                found.setdefault(fact.path, set()).add(value)
    return found


def _are_apart(parts: Sequence[Decimal], wholes: Sequence[Decimal], size: Decimal, room: Decimal) -> bool:
    """Whether a number of each lie so far apart, other than from nothing or by halves of one another."""
    ordered = sorted({*wholes})
    return any(
        _has_near(ordered, one + size, room) or _has_near(ordered, one - size, room)
        for one in {*parts}
        if abs(one) not in (size, size / 2, size * 2)
    )


def _list_signed(told: Sequence[Decimal]) -> list[Decimal]:
    """What comes of three and more numbers, each added or taken away."""
    made = [(Decimal(0), 0)]
    for one in told:
        made += [(value + sign * one, n + 1) for value, n in made for sign in (1, -1)]
    return sorted({value for value, n in made if n > 2})


def _have_sum(told: Sequence[Decimal], number: Decimal, room: Decimal) -> bool:
    return any(abs(a + b - number) <= room for a, b in combinations(told, 2))


def _has_near(ordered: Sequence[Decimal], number: Decimal, room: Decimal) -> bool:
    at = bisect_left(ordered, number - room)
    return at < len(ordered) and ordered[at] <= number + room


def _list_factors(fact: Fact) -> list[Decimal]:
    """The other numbers of a fact's record."""
    beside = islice((other for other in fact.record.facts if other is not fact), MAX_FACTORS)
    numbers = [one.quantities[0].number for one in beside if len(one.quantities) == 1]
    return [number for number in numbers if number]


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

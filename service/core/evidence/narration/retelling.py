"""Check what the clauses of a text say about their entities against what those entities hold.

For each mention the question is: does any entity of its clause hold it? If none does but another of their kind does, the
value is swapped; if nothing at all does, and nobody said it, it is made up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from decimal import Decimal

from service.core.evidence.arithmetic.accounts import Accounts
from service.core.evidence.arithmetic.asked import asks_difference, asks_sum, is_worked_out
from service.core.evidence.arithmetic.slips import find_kin
from service.core.evidence.arithmetic.transforms import is_other_unit
from service.core.evidence.facts.entities import MAX_INSIDE, Entity, Holdings, Words, list_days, read_flag
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.fitting import (
    NOTHING,
    Fitting,
    find_other_unit,
    fit,
    is_of_kind,
    is_rough,
    is_typed,
    list_named,
    list_typed,
    relates,
)
from service.core.evidence.narration.verdicts import Ruling, Saying, Utterances, suspect
from service.core.evidence.reading.dates import name_weekday
from service.core.evidence.reading.quantities import Quantity, list_significant_digits
from service.core.evidence.reading.units import CURRENCIES, UNITS
from service.core.evidence.reading.words import find_root, split_tokens, stem_word
from service.core.evidence.sentences.claims import DENYING, NEGATED, Statement
from service.core.evidence.sentences.mentions import Clause, ClauseMention, follows_pronoun
from service.core.models.lazy import lazy

MAX_SIBLINGS = 60
"""How many other entities of the same kind are searched for what is said."""
MAX_DATED, MAX_NAMED = 500, 500
_SOME_OF = re.compile(r" (?:out )?of (?:the|your|these|those|them|all|two|three|four|five|six|seven|eight|nine|ten|\d)")
_NOT = re.compile(r"n['\u2019]t\b")
_NO = NEGATED | {"no"}
_ENDS = ("from", "to")
_TELLING = 2
"""A number with more significant digits than this must come from somewhere."""
_MOMENTS = frozenset({"date", "time"})


class Retelling:
    """Checks the clauses of one text against what results hold."""

    def __init__(
        self,
        holdings: Holdings,
        utterances: Utterances,
        accounts: Accounts,
        clauses: Sequence[Clause],
    ) -> None:
        self._clauses = clauses
        self._holdings = holdings
        self._utterances = utterances
        self._accounts = accounts

    def check(self) -> Iterator[Saying]:
        """Yield a ruling on each mention that can be judged, in text order."""
        for clause in self._clauses:
            for mention in clause.mentions:
                if mention.start in clause.named:
                    continue
                ruling = self._check(mention, clause)
                if ruling is not None:
                    yield Saying(mention.start, mention.end, mention.text, ruling)

    def _check(self, mention: ClauseMention, clause: Clause) -> Ruling | None:
        said = mention.quantity
        ruling = self._check_as(mention, clause)
        if ruling is None or said is None or not said.text.lower().endswith(("pound", "pounds")):
            return ruling
        weighed = self._check_as(mention._replace(quantity=said._replace(kind="measure", unit="lb")), clause)
        return ruling if weighed is not None and weighed.verdict in ("suspected", "contradicted") else weighed

    def _check_as(self, mention: ClauseMention, clause: Clause) -> Ruling | None:
        if _counts_part(mention, clause):
            return None
        if mention.part in _ENDS:
            return self._check_way(mention, clause) if mention.part == "to" else None
        subjects, said = clause.subjects, mention.quantity
        fits = [fit(mention, clause, entity) for entity in subjects] or [self._fit_sole(mention)]
        if len(fits) == 1 and fits[0].holds is None and subjects:
            fits = [self._fit_by_sibling(mention, clause, subjects[0])]
        holding = next((one for one in fits if one.holds), None)
        apart = said is not None and asks_difference(mention, clause)
        total = said is not None and asks_sum(clause)
        if said is None and mention.flag is None and _is_denied(mention, clause):
            return (
                suspect(mention.text, holding.facts[0], "negation")._replace(words=_NO)
                if holding and _is_sure(clause)
                else None
            )
        if holding is not None and not apart and not total:
            sure = _is_sure(clause) and (said is None or said.kind != "number" or holding.named)
            fits_well = said is None or said.kind != "number" or (holding.named and clause.sight != "loose")
            verdict = "supported" if sure else "not_checkable"
            return Ruling(verdict, holding.facts[0].pointer, holding.how) if fits_well else None
        return self._check_unheld(mention, clause, fits, apart=apart, total=total)

    def _check_unheld(
        self, mention: ClauseMention, clause: Clause, fits: Sequence[Fitting], *, apart: bool, total: bool
    ) -> Ruling | None:
        """Rule on a mention that no entity of the clause holds, or that is a sum or a difference."""
        said, refuted = mention.quantity, [one for one in fits if one.holds is False]
        held = any(one.holds for one in fits)
        if said is None and self._is_said(mention, clause):
            return None
        swapped = (
            bool(refuted)
            and len(clause.subjects) == 1
            and self._is_swapped(mention, clause, refuted[0], plain=not (apart or total))
        )
        unit = None if said is None or held or self._utterances.has(said) else self._check_unit(said, mention, clause)
        if unit is not None and not refuted:
            return unit
        may_be_derived = said is not None and not swapped and unit is None
        if may_be_derived and said is not None and self._is_derived(said, clause):
            return None
        if held or (not swapped and self._is_said(mention, clause)):
            return None
        rough = said is not None and is_rough(said, clause)
        if mention.flag is None and (rough or DENYING & {*split_tokens(_NOT.sub(" not", clause.text))}):
            return None
        return (
            self._refute(mention, clause, refuted, swapped=swapped)
            if refuted
            else self._check_anywhere(mention, clause)
        )

    def _is_swapped(self, mention: ClauseMention, clause: Clause, refuted: Fitting, *, plain: bool) -> bool:
        """Whether another entity of the kind holds exactly what is said, and nothing else accounts for it."""
        said = mention.quantity
        if said is not None and (not plain or is_worked_out(clause) or is_rough(said, clause)):
            return False
        if not self._is_of_another(mention, clause, {fact.path for fact in refuted.facts}):
            return False
        moment = said is not None and said.kind in ("date", "time") and not _is_alone(mention, clause)
        return not (moment and said is not None and self._is_derived(said, clause))

    def _check_unit(self, said: Quantity, mention: ClauseMention, clause: Clause) -> Ruling | None:
        """Rule on a number that results hold only in another unit: its field is named, or it is an amount with no other match."""
        held = [fact for value in said.values for fact in self._holdings.by_value.get(value, ())]
        other = [fact for fact in held if is_other_unit(said, fact)]
        named = bool(other) and bool({stem_word(word) for word in clause.words} & {*other[0].own})
        telling = said.kind == "money" and len(list_significant_digits(said.number or Decimal(0))) >= _TELLING
        if not other or not (named or (telling and len(other) == len(held))) or self._is_held(said, clause):
            return None
        proved = named and len(other) == 1
        return suspect(mention.text, other[0], "wrong_unit")._replace(verdict="contradicted" if proved else "suspected")

    def _is_said(self, mention: ClauseMention, clause: Clause) -> bool:
        """Whether others said the same words or the same quantity."""
        said = mention.quantity
        if said is None:
            return bool(mention.words) and clause.sight != "here" and self._utterances.words(mention.text)
        return self._utterances.has(said)

    def _check_way(self, mention: ClauseMention, clause: Clause) -> Ruling | None:
        """Suspect `from Rome to Oslo` if the entities of the clause (or, without any, all entities) go the other way."""
        start = next((one for one in clause.mentions if one.part == "from"), None)
        if start is None:
            return None
        ways = [way for entity in clause.subjects for way in self._list_ways(entity)] or self._ways
        said = (start.words, mention.words)
        wrong = [fact for (here, there), fact in ways if (there, here) == said]
        return (
            suspect(mention.text, wrong[0], "swapped") if wrong and said not in [way for way, _ in self._ways] else None
        )

    @lazy
    def _ways(self) -> list[tuple[tuple[Words, Words], Fact]]:
        return [way for entity in self._holdings.entities[:MAX_SIBLINGS] for way in self._list_ways(entity)]

    def _list_ways(self, entity: Entity) -> Iterator[tuple[tuple[Words, Words], Fact]]:
        """Yield the (from, to) pairs of an entity, each with the fact of its destination."""
        roles = self._holdings.roles
        for there in [fact for fact in entity.inside[:MAX_INSIDE] if fact.path in roles["to"]]:
            for here in there.record.facts:
                if here.path in roles["from"] and here.path[:-1] == there.path[:-1]:
                    yield (tuple(split_tokens(str(here.value))), tuple(split_tokens(str(there.value)))), there

    def _fit_sole(self, mention: ClauseMention) -> Fitting:
        """Fit a true-or-false mention of a clause without a subject: all values of its fields must agree."""
        if mention.flag is None:
            return NOTHING
        held = [fact for path in mention.columns for fact in self._holdings.by_path[path]]
        values = {read_flag(fact) for fact in held}
        return Fitting(values == {mention.flag}, tuple(held)) if len(values) == 1 else NOTHING

    def _fit_by_sibling(self, mention: ClauseMention, clause: Clause, subject: Entity) -> Fitting:
        """Fit a number by the field in which another entity of the kind holds it, where its own words name none."""
        said = mention.quantity
        if said is None or said.number is None or len(list_significant_digits(said.number)) < _TELLING:
            return NOTHING
        alone = sum(one.quantity is not None for one in clause.mentions) == 1
        near = clause.sight == "here" or _is_alone(mention, clause)
        if not (alone and near) or self._is_about_subject(said, clause, subject):
            return NOTHING
        for other in self._iter_others(clause):
            paths = {fact.path for fact in other.own if relates(said, fact, clause)}
            own = tuple([fact for fact in subject.own if fact.path in paths and fact.quantities])
            if own:
                return Fitting(False, own)
        return NOTHING

    @staticmethod
    def _is_about_subject(said: Quantity, clause: Clause, subject: Entity) -> bool:
        """Whether the subject, or what contains it, holds a number in any of its fields."""
        return any(relates(said, fact, clause) for fact in (*subject.inside[:MAX_INSIDE], *subject.iter_around()))

    def _is_derived(self, said: Quantity, clause: Clause) -> bool:
        """Whether a quantity follows from known values: by arithmetic, over a span of time, or by another clock."""
        statement = Statement(said, clause.sentence, clause.sentence_start)
        return self._accounts.give_near(statement, rough=is_rough(said, clause))

    def _refute(
        self, mention: ClauseMention, clause: Clause, fits: Sequence[Fitting], *, swapped: bool
    ) -> Ruling | None:
        """Rule on a mention that the entities of the clause do not hold, though they hold something of its kind."""
        fact, said = fits[0].facts[0], mention.quantity
        sure = clause.sight in ("here", "before") or (clause.sight == "far" and follows_pronoun(clause))
        proved = said is not None and clause.sight == "here" and len(clause.subjects) == 1 == len(fits[0].facts)
        proved = proved and (said is None or said.kind not in ("date", "number") or fits[0].named)
        proved = proved and _names_whole(mention.head, fact)
        if mention.flag is not None:
            verdict = "contradicted" if _is_sure(clause) else "suspected"
            clear = sure or _is_sure(clause)
            return (
                _deny(mention, fact)._replace(verdict=verdict)
                if clear and not _is_beside_noun(mention, clause)
                else None
            )
        if said is not None and said.kind == "number" and not fits[0].named and not swapped:
            return None
        if swapped:
            verdict = "contradicted" if proved else "suspected"
            return suspect(mention.text, fact, "swapped_entity")._replace(verdict=verdict) if sure else None
        if said is None:
            return self._check_day(mention, fact)
        if self._is_held(said, clause):
            return None
        other = find_other_unit(said, fits[0].facts) if sure else None
        if other is not None:
            return suspect(mention.text, other, "wrong_unit")._replace(
                verdict="contradicted" if proved else "suspected"
            )
        return self._suspect_unknown(mention, clause, said, fits)

    def _suspect_unknown(
        self, mention: ClauseMention, clause: Clause, said: Quantity, fits: Sequence[Fitting]
    ) -> Ruling | None:
        """Suspect a value that nothing holds, if it is a slip of one the entities hold or its words can mean only one field."""
        facts = [fact for one in fits for fact in one.facts if is_typed(said, fact) or one.named]
        kin = find_kin(said, facts)
        sole = len({fact.path for fact in facts}) == 1 and len(clause.subjects) == 1 and _is_sure(clause)
        named = fits[0].named or bool(list_named(said, clause, facts))
        earned = kin is not None or sole or (named and clause.sight in ("here", "before"))
        return suspect(mention.text, kin or fits[0].facts[0], "not_found") if earned else None

    def _is_of_another(self, mention: ClauseMention, clause: Clause, paths: Set[Words]) -> bool:
        """Whether another entity of the same kind holds what is said, and what is said is not itself a name.

        `paths`: the fields in which the entity of the clause holds something else.
        """
        return (
            clause.keyed
            and not clause.by & mention.columns
            and any(_is_held_by(mention, clause, other, paths) for other in self._iter_others(clause))
        )

    def _iter_others(self, clause: Clause) -> Iterator[Entity]:
        known = {id(entity) for entity in clause.subjects}
        for group in {entity.group: None for entity in clause.subjects if entity.group}:
            yield from (one for one in self._holdings.groups.get(group, ())[:MAX_SIBLINGS] if id(one) not in known)

    def _check_day(self, mention: ClauseMention, fact: Fact) -> Ruling | None:
        """Suspect a weekday on which nothing in the results falls."""
        if not mention.weekday or self._utterances.words(mention.text):
            return None
        named = {name_weekday(day) for fact in self._holdings.dated[:MAX_DATED] for day in list_days(fact)}
        return None if mention.weekday in named else suspect(mention.text, fact, "wrong_weekday")

    def _check_anywhere(self, mention: ClauseMention, clause: Clause) -> Ruling | None:
        """Rule on a mention that a text seems to retell and no result holds."""
        said = mention.quantity
        if mention.weekday and self._holdings.dated:
            return self._check_day(mention, self._holdings.dated[0])
        if said is None or self._is_held(said, clause):
            return None
        if (sole := self._find_sole(said, clause)) is not None:
            return suspect(mention.text, sole, "not_found")
        kin = find_kin(said, list_typed(said, self._holdings)) if said.kind in _MOMENTS else None
        return suspect(mention.text, kin, "not_found") if kin is not None else None

    def _find_sole(self, said: Quantity, clause: Clause) -> Fact | None:
        """Find the single fact whose field a clause without a subject names in full: `the fee is $12`."""
        if clause.subjects:
            return None
        words = {find_root(stem_word(word)) for word in clause.words}
        named = [fact for fact, roots in self._list_rooted(said) if roots <= words]
        named = (
            [fact for fact in named if is_typed(said, fact)]
            if said.kind != "number"
            else list_named(said, clause, named)
        )
        return named[0] if len(named) == 1 else None

    def _list_rooted(self, said: Quantity) -> list[tuple[Fact, frozenset[str]]]:
        """Return the facts comparable with a quantity, each with the roots of the words that name its field."""
        facts = (fact for fact in self._holdings.facts[:MAX_NAMED] if fact.own and is_of_kind(said, fact))
        key = Retelling, said.kind, said.unit
        return self._holdings.once(key, lambda: [(fact, _list_roots(fact)) for fact in facts])

    def _is_held(self, said: Quantity, clause: Clause) -> bool:
        if said.kind in ("date", "time"):
            return self._holdings.has_moment(said)
        near = self._holdings.scale.find_near(said, about=is_rough(said, clause))
        return any(relates(said, fact, clause) for fact in near)


def _is_alone(mention: ClauseMention, clause: Clause) -> bool:
    """Whether a clause says nothing else: `Nordlys: February 27`."""
    return clause.text.strip(" .*_") == mention.text


def _is_held_by(mention: ClauseMention, clause: Clause, entity: Entity, paths: Set[Words]) -> bool:
    said = mention.quantity
    if fit(mention, clause, entity).holds:
        return True
    return said is not None and any(relates(said, fact, clause) for fact in entity.own if fact.path in paths)


def _counts_part(mention: ClauseMention, clause: Clause) -> bool:
    """Whether a mention counts some of a number of things, which no field holds: `four of the seven days`."""
    after = clause.text[mention.end - clause.start :]
    return mention.quantity is not None and mention.quantity.kind == "number" and _SOME_OF.match(after) is not None


def _list_roots(fact: Fact) -> frozenset[str]:
    return frozenset(find_root(word) for word in fact.own if word not in UNITS and word.upper() not in CURRENCIES)


def _names_whole(head: Words, fact: Fact) -> bool:
    """Whether the head of a column, if there is one, has every word of a field's name: `Free` is not gluten_free."""
    roots = {find_root(stem_word(word)) for word in head}
    return not head or all(find_root(word) in roots for word in fact.own if word not in UNITS)


def _deny(mention: ClauseMention, fact: Fact) -> Ruling:
    return suspect(mention.text, fact, "negation")._replace(words=_NO)


def _is_beside_noun(mention: ClauseMention, clause: Clause) -> bool:
    """Whether a noun right after the mention is what it describes: `no open queries`."""
    return bool(re.match(r"[ ]\w", clause.text[mention.end - clause.start :]))


def _is_denied(mention: ClauseMention, clause: Clause) -> bool:
    """Whether a word right before the mention negates it: `not delivered`."""
    before = _NOT.sub(" not", clause.text[: mention.start - clause.start])
    return bool(NEGATED & {*split_tokens(before)[-2:]})


def _is_sure(clause: Clause) -> bool:
    """Whether it is clear which entity a clause is about."""
    if not clause.subjects:
        return all(one.entity is None for one in clause.mentions)
    return clause.sight in ("here", "before") and len(clause.subjects) == 1

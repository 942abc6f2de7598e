"""Check superlatives: `the cheapest is HAT083`, `the longest takes 5 hours`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from service.core.evidence.facts.entities import Entity, Holdings, Words
from service.core.evidence.facts.facts import Fact
from service.core.evidence.narration.fitting import is_of_kind, is_rough, is_typed, relates
from service.core.evidence.narration.verdicts import Saying, suspect
from service.core.evidence.reading.words import split_tokens, split_words, stem_word
from service.core.evidence.sentences.claims import ABOUT, LINKS
from service.core.evidence.sentences.mentions import Clause, ClauseMention, find_words

_TABLE = """
cheapest | - | price cost fare rate rent fee total amount
priciest dearest costliest | + | price cost fare rate rent fee total amount
earliest soonest | - | departure depart start begin time date due opened created
latest newest | + | departure depart start begin time date due opened created built
fastest quickest shortest briefest | - | duration length minute hour time distance
longest slowest | + | duration length minute hour time distance
nearest closest | - | distance away length
farthest furthest | + | distance away length
warmest hottest | + | high temperature temp max
coldest coolest | - | low temperature temp min
windiest stormiest | + | wind gust
calmest | - | wind gust
heaviest | + | weight mass
lightest | - | weight mass
oldest | + | age open hour
oldest | - | year built since opened created
youngest | - | age
youngest | + | year built
"""
_GENERAL = {
    **dict.fromkeys(split_words("most highest largest biggest greatest strongest maximum fullest busiest"), 1),
    **dict.fromkeys(split_words("least lowest smallest weakest fewest minimum"), -1),
    **dict.fromkeys(split_words("best worst"), 0),
}
_FILLING = split_words("the of a an is was at with has have in by number among all for")
_VERBS = split_words("is are was were has had have be s scored leads came comes being")
_PICKING = split_words("with without that which who under below above over in still available open free left")
_SHARES = split_words("percent percentage pct share rate humidity precipitation rain")
"""Words that ask for a share: other superlatives are never about percentages."""
_NO_SUPERLATIVES = split_words(
    "interest request forest guest honest modest harvest invest suggest digest protest contest latest"
)
_BARE = 4
"""Most words of a clause that gives just a number: `the cheapest (5 euros)`."""
MAX_ITEMS = 100
"""Larger groups are not compared."""


class _Query(NamedTuple):
    """What a superlative asks for: the greatest (1), the least (-1) or either (0) of a field with one of these words.

    Without words it may be any field.
    """

    sign: int
    words: frozenset[str]
    only: bool = False
    """Whether these words must name the field."""


def _build_table() -> dict[str, list[_Query]]:
    found: dict[str, list[_Query]] = {}
    for line in _TABLE.strip().splitlines():
        names, sign, fields = (part.strip() for part in line.split("|"))
        for name in names.split():
            found.setdefault(name, []).append(_Query(1 if sign == "+" else -1, split_words(fields)))
    return found


_SPECIAL = _build_table()


def check_superlatives(clauses: Sequence[Clause], holdings: Holdings) -> Iterator[Saying]:
    """Find clauses that name the wrong entity or value as the most or the least of a field."""
    before: Clause | None = None
    queries: list[_Query] = []
    for clause in clauses:
        same = before is not None and before.sentence_start == clause.sentence_start
        now = _find_queries(clause, queries if same else []) if not _is_of_some(clause) else []
        if now:
            yield from _check(clause, now, holdings)
        bare = queries if same and not now and len(clause.words) <= _BARE else []
        yield from _check_value(clause, now or bare, holdings)
        queries, before = now or (queries if same else []), clause


def _is_of_some(clause: Clause) -> bool:
    """Whether words limit the superlative to some of the entities: `among the extras`, `the closest with a copy`."""
    words = clause.words
    at = next((n for n, word in enumerate(words) if _is_superlative(word)), len(words))
    to = next((n for n in range(at, len(words)) if words[n] in _VERBS), at)
    return bool(_PICKING & {*words[at:to]}) or "among" in find_words(clause.sentence)


def _find_queries(clause: Clause, before: Sequence[_Query]) -> list[_Query]:
    """Return what the single superlative of a clause asks for; if it names no field, the one before it decides."""
    words = clause.words
    special = [_SPECIAL[word] for word in words if word in _SPECIAL]
    special += [
        [_Query(0, frozenset())] for word in words if word not in _SPECIAL and word not in _GENERAL and _is_other(word)
    ]
    general = [(n, _GENERAL[word]) for n, word in enumerate(words) if word in _GENERAL]
    if len(general) == 1 and not special and words[general[0][0] + 1 : general[0][0] + 2] == ["expensive"]:
        return _SPECIAL["priciest" if general[0][1] > 0 else "cheapest"]
    if len(special) + len(general) != 1 or words[:1] == ["at"]:
        return []
    if special:
        return special[0]
    n, sign = general[0]
    after = [stem_word(word) for word in words[n + 1 : n + 5] if word not in _FILLING and not word.isdigit()][:2]
    if not after and before:
        return [one._replace(sign=sign) for one in before]
    return [_Query(sign, frozenset(after), only=bool(after))]


def _check(clause: Clause, queries: Sequence[_Query], holdings: Holdings) -> Iterator[Saying]:
    subjects = clause.subjects if clause.sight == "here" else ()
    groups = {entity.group for entity in subjects if entity.group}
    if len(subjects) == 1 and len(groups) == 1 and len(clause.named) == 1 and _is_joined(clause):
        yield from _check_entity(clause, subjects[0], queries, holdings)


def _is_joined(clause: Clause) -> bool:
    """Whether a clause says that the named entity is the superlative: a verb links the two, or they are adjacent."""
    words = clause.words
    at = next((n for n, word in enumerate(words) if _is_superlative(word)), 0)
    start = min(clause.named) - clause.start
    ahead = split_tokens(clause.text[:start])
    mention = (
        next(one for one in clause.mentions if one.start in clause.named)
        if any(one.start in clause.named for one in clause.mentions)
        else None
    )
    length = len(split_tokens(mention.text)) if mention else 2
    if len(ahead) > at:
        return bool(_VERBS & {*words[at + 1 : len(ahead)]}) or len(ahead) == at + 1
    between = words[len(ahead) + length : at]
    return bool(_VERBS & {*between}) or between in (["the"], [])


def _check_entity(clause: Clause, entity: Entity, queries: Sequence[_Query], holdings: Holdings) -> Iterator[Saying]:
    members = holdings.groups.get(entity.group, [])
    tried = [
        (one, column)
        for one in queries
        for column in _list_columns(members, one.words, clause)
        if entity.place in column
    ]
    if not tried or not all(column[entity.place] not in _find_ends(column, one.sign) for one, column in tried):
        return
    one, column = tried[0]
    best = next(fact for fact in column.values() if fact in _find_ends(column, one.sign))
    said = clause.text.strip()
    start = clause.start + len(clause.text) - len(clause.text.lstrip())
    yield Saying(start, start + len(said), said, suspect(said, best, "wrong_extreme")._replace(words=None))


def _check_value(clause: Clause, queries: Sequence[_Query], holdings: Holdings) -> Iterator[Saying]:
    """Find a number that is given as the most or the least and that a column holds, but at neither end asked for."""
    values = [one for one in clause.mentions if one.quantity is not None and one.quantity.number is not None]
    if not queries or len(values) != 1 or values[0].quantity is None or not _stands_alone(clause, values[0], holdings):
        return
    said = values[0].quantity
    found: list[Fact] = []
    columns = holdings.once(_index_columns, lambda: _index_columns(holdings))
    for fact in holdings.scale.find_near(said, about=is_rough(said, clause)):
        column = columns.get(id(fact))
        meant = _pick(queries, column) if column is not None else ()
        if column is None or not meant or not is_of_kind(said, fact) or not relates(said, fact, clause):
            continue
        ends = [end for one in meant for end in _list_ends(holdings, column, one.sign)]
        if fact in ends:
            return
        found += ends[:1] if is_typed(said, fact) or said.kind == "number" else []
    if found:
        yield Saying(
            said.start, said.end, said.text, suspect(said.text, found[0], "wrong_extreme")._replace(words=None)
        )


def _index_columns(holdings: Holdings) -> dict[int, Mapping[int, Fact]]:
    """Map the id of each fact of an array to its column."""
    groups = [members for group, members in holdings.groups.items() if group[0] == "array"]
    columns = [column for members in groups for column in _list_full_columns(members)]
    return {id(fact): column for column in columns for fact in column.values()}


def _list_ends(holdings: Holdings, column: Mapping[int, Fact], sign: int) -> list[Fact]:
    return holdings.once((_list_ends, id(column), sign), lambda: _find_ends(column, sign))


def _list_nouns(holdings: Holdings) -> frozenset[str]:
    own = (word for one in holdings.entities[:MAX_ITEMS] if one.collection for word in one.collection.own)
    return holdings.field_words.union(own)


def _pick(queries: Sequence[_Query], column: Mapping[int, Fact]) -> Sequence[_Query]:
    """Return what is asked about a column: whatever names it, or else the first that may mean any field."""
    own = {*next(iter(column.values())).own}
    named = [query for query in queries if query.words & own]
    return named or [query for query in queries if not query.only][:1]


def _stands_alone(clause: Clause, value: ClauseMention, holdings: Holdings) -> bool:
    """Whether no word between superlative and number may limit the entities, as in `the cheapest direct one`."""
    ahead = clause.text[: max(0, value.start - clause.start)]
    named = {
        word for one in clause.mentions if one.start in clause.named or one.words for word in split_tokens(one.text)
    }
    words = split_tokens(ahead)
    at = max([n for n, word in enumerate(words) if _is_superlative(word)], default=-1)
    if (at < 0 and any(map(_is_superlative, clause.words))) or words[-2:] == ["of", "the"] or words[-1:] == ["of"]:
        return False
    nouns = holdings.once(_list_nouns, lambda: _list_nouns(holdings))
    between = {word for word in words[at + 1 :] if word not in named} - _FILLING - _VERBS - LINKS - ABOUT
    return not {stem_word(word) for word in between} - nouns


def _is_superlative(word: str) -> bool:
    return word in _SPECIAL or word in _GENERAL or _is_other(word)


def _is_other(word: str) -> bool:
    return len(word) > 5 and word.endswith("est") and word not in _NO_SUPERLATIVES


def _list_columns(
    members: Sequence[Entity], field_words: frozenset[str], clause: Clause
) -> Sequence[Mapping[int, Fact]]:
    """Return the columns that may be meant: those with a word asked for, preferably named in the sentence too."""
    full = [
        column
        for column in _list_full_columns(members)
        if next(iter(column.values())).counted.unit != "%" or field_words & _SHARES
    ]
    if "duration" in field_words:  # what is long or short is no moment
        full = [column for column in full if isinstance(_read_value(next(iter(column.values()))), Decimal)]
    named = [column for column in full if field_words & {*next(iter(column.values())).own}]
    said = {stem_word(word) for word in split_tokens(clause.sentence)}
    best = [column for column in named if {*next(iter(column.values())).own} & said]
    return best or named


def _list_full_columns(members: Sequence[Entity]) -> list[dict[int, Fact]]:
    """List the fields that every member of a group has, each as its facts by the members' places."""
    columns: dict[Words, dict[int, Fact]] = {}
    for entity in members if 1 < len(members) <= MAX_ITEMS else ():
        for fact in entity.own:
            if _read_value(fact) is not None:
                columns.setdefault(fact.path, {})[entity.place] = fact
    return [column for column in columns.values() if len(column) == len(members)]


def _read_value(fact: Fact) -> Decimal | str | None:
    """Return what a fact is ordered by: a number, or a moment as text; None if neither."""
    if isinstance(fact.value, bool) or fact.value is None:
        return None
    numbers = [held.number for held in fact.quantities if held.number is not None]
    if len(fact.quantities) == 1 and len(numbers) == 1:
        return numbers[0]
    moments = [str(held.value) for held in fact.quantities if held.kind in ("date", "time")]
    return " ".join(moments) if moments and len(moments) == len(fact.quantities) else None


def _find_ends(column: Mapping[int, Fact], sign: int) -> list[Fact]:
    values = {n: _read_value(fact) for n, fact in column.items()}
    ordered = sorted({value for value in values.values() if isinstance(value, Decimal)}) or sorted(
        {value for value in values.values() if isinstance(value, str)}
    )
    ends = {ordered[0]} if sign < 0 else {ordered[-1]} if sign > 0 else {ordered[0], ordered[-1]}
    return [column[n] for n, value in values.items() if value in ends]

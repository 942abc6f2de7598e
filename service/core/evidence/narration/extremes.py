"""Which of several is the most or the least: `the cheapest is HAT083`, `Kiel has the most goals`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import NamedTuple

from service.core.evidence.narration.claims import Claim, is_open
from service.core.evidence.narration.fact_index import FactIndex
from service.core.evidence.narration.facts import Collection, Fact
from service.core.evidence.narration.verdicts import Ruling, build_suspicion
from service.core.evidence.reading.quantities import Quantity
from service.core.evidence.reading.words import flatten_text, split_tokens, split_words, stem_word

_SENTENCE = re.compile(r"[^.!?;\n]++(?:[.!?](?=\S)[^.!?;\n]++)*[.!?;]?")
MAX_SENTENCES, MAX_CLAUSES, MAX_ITEMS = 200, 6, 100


class Superlative(NamedTuple):
    """What a word asks for: the greatest (1) or the least (-1) of a field with one of these words or of this sort."""

    sign: int
    words: frozenset[str]
    sort: str = ""


def _build_table() -> dict[str, Superlative]:
    found: dict[str, Superlative] = {}
    for line in _TABLE.strip().splitlines():
        names, sign, fields, sort = (part.strip() for part in line.split("|"))
        for name in names.split():
            found[name] = Superlative(1 if sign == "+" else -1, split_words(fields), sort)
    return found


_TABLE = """
cheapest | - | price cost fare rate rent fee total amount | money
priciest dearest costliest | + | price cost fare rate rent fee total amount | money
earliest soonest first | - | departure depart start begin time date due opened created | time
latest newest | + | departure depart start begin time date due opened created | time
fastest quickest shortest briefest | - | duration length minute hour time distance age | duration
longest slowest | + | duration length minute hour time distance age | duration
nearest closest | - | distance away | length
farthest furthest | + | distance away | length
warmest hottest | + | high temperature temp max | temperature
coldest coolest | - | low temperature temp min | temperature
windiest stormiest | + | wind gust | speed
calmest | - | wind gust | speed
heaviest | + | weight mass | mass
lightest | - | weight mass | mass
oldest | + | age open hour year built | age
youngest | - | age year built | age
"""
_SUPERLATIVES = _build_table()
_GENERAL = {
    **dict.fromkeys(split_words("most highest largest biggest greatest top best maximum fullest busiest"), 1),
    **dict.fromkeys(split_words("least lowest smallest fewest minimum worst"), -1),
}
_VERBS = split_words("is are was were has had have be s had scored leads")


def check_extremes(text: str, fact_index: FactIndex) -> Iterator[tuple[Claim, Ruling]]:
    """What sentences say wrongly of who has the most or the least: suspected, for no field says which column is meant."""
    shelves = [_Shelf(one) for one in fact_index.collections if 1 < len(one.items) <= MAX_ITEMS]
    for n, match in enumerate(_SENTENCE.finditer(text)):
        words = split_tokens(match.group())
        if not shelves or n >= MAX_SENTENCES:
            return
        if {*words} & {*_SUPERLATIVES, *_GENERAL} and not is_open(match.group()) and not match.group().endswith("?"):
            for clause, start in _split_clauses(match.group(), match.start()):
                yield from _check_clause(clause, start, shelves, match.group())


_JOINT = re.compile(r",? (?:and|while|but|whereas) (?:the )?|[;,] ")


def _split_clauses(sentence: str, start: int) -> Iterator[tuple[str, int]]:
    """The parts of a sentence: one with a superlative or a name each."""
    at = 0
    for joint in [*islice(_JOINT.finditer(sentence), MAX_CLAUSES), None]:
        end = joint.start() if joint else len(sentence)
        yield sentence[at:end], start + at
        at = joint.end() if joint else end


class _Shelf:
    """The records of an array, by what only one of them is called."""

    def __init__(self, collection: Collection) -> None:
        self.items = collection.items
        called: dict[str, set[int]] = {}
        for n, item in enumerate(collection.items):
            for name in item.called:
                called.setdefault(name, set()).add(n)
        self.names = {name: min(at) for name, at in called.items() if len(at) == 1}

    def find_named(self, flat: str) -> set[int]:
        """The records that a flat text names."""
        return {n for name, n in self.names.items() if name in flat}

    def is_joined(self, clause: str) -> bool:
        """Whether a clause says of a name that it is the superlative: by a verb between, or by nothing but `the`."""
        flat = flatten_text(clause)
        names = [(flat.find(name), len(name)) for name in self.names if name in flat]
        ends = [flat.find(f" {word} ") for word in flat.split() if word in _SUPERLATIVES or word in _GENERAL]
        if not names or not ends:
            return False
        at, length = max(names, key=lambda place: place[1])
        between = flat[at + length : ends[0]] if at < ends[0] else flat[ends[0] + 1 : at]
        return bool(_VERBS & {*between.split()}) or (at < ends[0] and between.split() in (["the"], []))

    def list_columns(self, asked: Superlative, words: Sequence[str]) -> list[dict[int, Fact]]:
        """The columns that may be meant: of all that the words name, those that they name best."""
        columns: dict[tuple[str, ...], dict[int, Fact]] = {}
        for n, item in enumerate(self.items):
            for fact in item.facts:
                if _read_value(fact) is not None:
                    columns.setdefault(fact.path, {})[n] = fact
        full = [column for column in columns.values() if len(column) == len(self.items)]
        named = [one for one in full if asked.words & {*next(iter(one.values())).own}]
        said = [one for one in named if {*next(iter(one.values())).own} & {*words}]
        return said or named


def _read_value(fact: Fact) -> Decimal | str | None:
    """What a fact is compared by: a number, or a moment as text."""
    if isinstance(fact.value, bool) or fact.value is None:
        return None
    numbers = [held.number for held in fact.quantities if held.number is not None]
    if len(fact.quantities) == 1 and len(numbers) == 1:
        return numbers[0]
    moments = [str(held.value) for held in fact.quantities if held.kind in ("date", "time")]
    return " ".join(moments) if moments and len(moments) == len(fact.quantities) else None


def _check_clause(clause: str, start: int, shelves: Sequence[_Shelf], sentence: str) -> Iterator[tuple[Claim, Ruling]]:
    words = [stem_word(word) for word in split_tokens(clause)]
    asked = _find_asked(split_tokens(clause))
    if asked is None:
        return
    for shelf in shelves:
        named = shelf.find_named(flatten_text(clause))
        columns = shelf.list_columns(asked, words)
        if len(named) != 1 or not columns or not shelf.is_joined(clause):
            continue
        [at] = named
        wrong = [column for column in columns if at not in _find_ends(column, asked.sign)]
        if len(wrong) == len(columns):
            claim = _build_claim(clause, start, sentence)
            ends = _find_ends(columns[0], asked.sign)
            fact = columns[0][min(ends)]
            yield claim, build_suspicion(claim, fact, "wrong_extreme")


def _find_asked(words: Sequence[str]) -> Superlative | None:
    """The one superlative of a clause; `the most expensive` asks for the price, `the most goals` for goals."""
    if "least" in words and "expensive" in words:
        return _SUPERLATIVES["cheapest"]
    if "most" in words and "expensive" in words:
        return _SUPERLATIVES["priciest"]
    found = [_SUPERLATIVES[word] for word in words if word in _SUPERLATIVES]
    general = [(n, _GENERAL[word]) for n, word in enumerate(words) if word in _GENERAL]
    if len(found) + len(general) != 1 or words[:1] == ["at"]:
        return None
    if found:
        return found[0]
    n, sign = general[0]
    after = words[n + 1 : n + 4]
    return Superlative(sign, frozenset(stem_word(word) for word in after)) if after else None


def _find_ends(column: dict[int, Fact], sign: int) -> set[int]:
    values = {n: _read_value(fact) for n, fact in column.items()}
    ordered = sorted({value for value in values.values() if isinstance(value, Decimal)}) or sorted(
        {value for value in values.values() if isinstance(value, str)}
    )
    return {n for n, value in values.items() if value == ordered[-1 if sign > 0 else 0]}


def _build_claim(clause: str, start: int, sentence: str) -> Claim:
    said = clause.strip()
    start += len(clause) - len(clause.lstrip())
    quantity = Quantity("name", said, "", start, start + len(said), said)
    return Claim(quantity, sentence, (), exact=False, plain=True, line_start=start, sentence_start=start)

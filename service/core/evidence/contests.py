"""A contest in results: two sides with a name each, and scores of both, as a whole and by parts of the game.

Sides are found by the names of fields: two paths that differ in one word, such as `home_score` and `away_score`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from service.core.evidence.facts import Fact
from service.core.evidence.words import listed, stems
from service.core.lazy import lazy

SCORES = listed("score goal point pts run")
"""Words that scores stand under, and are called by."""
_NAMES = listed("name city team")
_PLAIN = listed("hockey football soccer basketball club team sport sports united city national")
"""Words of many names."""
_TEAM = "(?:team|side|club|squad)"
_MORE = {"home": ["[Tt]he hosts"], "away": ["[Vv]isit(?:ors|ing team)"], "vis": ["[Vv]isit(?:ors|ing team)"]}
_NUMBERED = re.compile(r"([a-z]+)(\d)")
MAX_SCORE = 500

Pair = tuple[int, int]


class Score(NamedTuple):
    """What both sides have: `part` is what its name adds to the score's, such as `period1`."""

    part: str
    pair: Pair
    facts: tuple[Fact, Fact]


class Mention(NamedTuple):
    """A place in a text where a side is named."""

    start: int
    end: int
    side: int


@dataclass
class Contest:
    """Two sides and their scores."""

    words: tuple[str, str]
    names: tuple[tuple[str, ...], tuple[str, ...]]
    scores: tuple[Score, ...]

    @lazy
    def parts(self) -> dict[int, Score]:
        """The scores of numbered parts, `period1` and on, where all parts have one name and none is left out."""
        found = [(match.groups(), score) for score in self.scores if (match := _NUMBERED.fullmatch(score.part))]
        parts = {int(number): score for (_, number), score in found}
        whole = sorted(parts) == list(range(1, len(found) + 1)) and len({name for (name, _), _ in found}) == 1
        return parts if whole else {}

    @lazy
    def part_name(self) -> str:
        """What a numbered part is called by its fields: `period`, `qtr`."""
        return self.parts[1].part[:-1] if self.parts else ""

    @lazy
    def wholes(self) -> list[Score]:
        """The scores that are of no numbered part and not of a half."""
        return [score for score in self.scores if not _NUMBERED.search(score.part) and "half" not in score.part]

    def running(self, number: int) -> Pair:
        """The score at the end of a numbered part; (0, 0) before the first."""
        pairs = [self.parts[n].pair for n in range(1, number + 1)]
        return sum(one for one, _ in pairs), sum(other for _, other in pairs)

    @lazy
    def winner(self) -> int | None:
        """The side that won; None where scores are level or do not agree."""
        ahead = {one < other for one, other in (score.pair for score in self.wholes) if one != other}
        return int(ahead.pop()) if len(ahead) == 1 else None

    def mentions(self, text: str) -> Iterator[Mention]:
        """Where a text names a side."""
        for match in self._called.finditer(text):
            yield Mention(match.start(), match.end(), 0 if match.lastgroup == "one" else 1)

    @lazy
    def _called(self) -> re.Pattern[str]:
        own = [{word for name in names for word in re.findall(r"[^\W_]+", name)} for names in self.names]
        options: list[str] = []
        for n, group in ((0, "one"), (1, "other")):
            others = {word.casefold() for word in own[1 - n]}
            words = {w for w in own[n] if len(w) > 3 and w[0].isupper() and w.casefold() not in others | _PLAIN}
            called = [re.escape(name) for name in sorted({*self.names[n], *words}, key=len, reverse=True)]
            called += [f"(?i:{self.words[n]}) {_TEAM}", *_MORE.get(self.words[n], ())]
            options.append(rf"(?P<{group}>\b(?:{'|'.join(called)})(?!\w))")
        return re.compile("|".join(options))


def contest_of(fields: Mapping[tuple[str, ...], Sequence[Fact]]) -> Contest | None:
    """The one contest that results tell of, by the facts under each path; None where there are none or several."""
    single = [facts[0] for facts in fields.values() if len(facts) == 1]
    scores, names = _twins(f for f in single if _is_score(f)), _twins(f for f in single if _is_name(f))
    sides = [pair for pair in scores if pair in names]
    if len(sides) != 1:
        return None
    found = [Score(_part(one, sides[0]), (_number(one), _number(other)), (one, other)) for one, other in scores[sides[0]]]
    called = _called(names[sides[0]])
    return Contest(sides[0], called, tuple(found)) if called is not None else None


def _called(twins: Sequence[tuple[Fact, Fact]]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The names of both sides, of the fields nearest to the top; None where one's name is a part of the other's."""
    depth = min(len(one.path) for one, _ in twins)
    near = [(str(one.value), str(other.value)) for one, other in twins if len(one.path) == depth]
    if any(one in other or other in one for one, _ in near for _, other in near):
        return None
    return tuple(one for one, _ in near), tuple(other for _, other in near)


def _twins(facts: Iterable[Fact]) -> dict[tuple[str, str], list[tuple[Fact, Fact]]]:
    """Facts whose paths differ in one word and whose fields have just two such, by these words."""
    holes: dict[tuple[str, ...], dict[str, Fact]] = defaultdict(dict)
    for fact in facts:
        words = _path_words(fact.path)
        for n, word in enumerate(words):
            holes[(*words[:n], "", *words[n + 1 :])][word] = fact
    found: dict[tuple[str, str], list[tuple[Fact, Fact]]] = defaultdict(list)
    for options in holes.values():
        if len(options) == 2:
            one, other = sorted(options)
            found[one, other].append((options[one], options[other]))
    return found


def _is_score(fact: Fact) -> bool:
    number = fact.quantities[0].number if len(fact.quantities) == 1 and fact.quantities[0].kind == "number" else None
    if number is None or not 0 <= number <= MAX_SCORE or number % 1:
        return False
    return not SCORES.isdisjoint(_path_words(fact.path))


def _is_name(fact: Fact) -> bool:
    return isinstance(fact.value, str) and 2 < len(fact.value) <= 60 and not _NAMES.isdisjoint(fact.own)


def _number(fact: Fact) -> int:
    return int(fact.quantities[0].number or 0)


def _part(fact: Fact, sides: tuple[str, str]) -> str:
    words = _path_words(fact.path)
    last = max(n for n, word in enumerate(words) if word in SCORES)
    return "".join(word for word in words[last + 1 :] if word not in sides)


@lru_cache(maxsize=8192)
def _path_words(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for key in path for word in stems(key))

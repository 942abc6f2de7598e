"""Find the typed values in a text: numbers, money, measures, shares, days, times, codes. One pass, linear in the text.

A mention may be read in several ways (`1,234`, `05/06/2024`, `4.30`): it is found wherever any of them is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from service.core.grounding.reading import moments
from service.core.grounding.reading.amounts import TAIL, read_amount, read_spelled_amount
from service.core.grounding.reading.languages import (
    LANGUAGES,
    MONTHS,
    MULTIPLIERS,
    NAMED_TIMES,
    PARTS,
    guess_language,
    list_number_words,
)
from service.core.grounding.reading.mentions import Mention, Reading, has_digit, normalize_code
from service.core.grounding.reading.moments import Time
from service.core.grounding.reading.units import CURRENCIES, find_unit
from service.core.models.light import lazy

MAX_TEXT_CHARS = 64_000
"""Characters read of one text."""
MAX_MENTIONS = 2_000
"""The most values of one text that are read."""

_START = re.compile(
    r"(?<![^\W_])(?P<word>[^\W\d_]++)(?![\w$]|[-.:/@#+](?=[^\W_]))"
    r"|(?<![^\W_])[^\W_¹²³⁰-⁹]|[$€£¥₹₩](?=[ \u00a0\u202f]?[-\u2212]?\d)|[½¼¾⅓⅔⅛]"
)
_TOKEN = re.compile(r"[^\W_]\w*+(?:[-.:/@#+](?=[^\W_])\w++){0,40}+")
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]++(?:\.[\w-]++)++|(?:https?://|www\.)[^\s)>\]\"'*`]++")
_BASED = re.compile(r"0[xX]([0-9a-fA-F]{1,12})|0b([01]{1,48})")
_NO_CODES = ("UTC", "GMT", "Q1", "Q2", "Q3", "Q4", "H1", "H2")
_MINUTES = re.compile(r"[ ]?m(?:in|\b)")
_JOINED = re.compile(r"[ ]?|,?[ ](?:and|und|y|et)[ ]|,[ ]")


def find_values(text: str) -> list[Mention]:
    """Return the values in the first 64,000 characters of a text, in order."""
    text = text[:MAX_TEXT_CHARS]
    return _join(text, _Scanner(text).scan())


class _Scanner:
    """Walks over a text from one place where a value may start to the next."""

    def __init__(self, text: str) -> None:
        self._text = text

    @lazy
    def _language(self) -> str:
        return guess_language(self._text)

    def scan(self) -> Iterator[Mention]:
        end = count = 0
        heads = _list_heads()
        for match in _START.finditer(self._text):
            word = match[1]
            if word is not None and word.lower() not in heads and word not in CURRENCIES:
                continue  # most words end here
            if (
                match.start() < end
                or count >= MAX_MENTIONS
                or (word and word.lower() not in _list_heads(self._language) and word not in CURRENCIES)
            ):
                continue
            for mention in self._read(match.start()):
                end, count = mention.end, count + 1
                yield mention

    def _read(self, at: int) -> Iterable[Mention]:
        token = _TOKEN.match(self._text, at)
        whole = token.group() if token is not None else ""
        if self._text[at].isalpha():
            return self._read_word(at, whole)
        if self._text[at].isdecimal():
            for read in (self._read_iso, self._read_clock, self._read_numeric_day, self._read_prose_day):
                if found := read(at):
                    return found
        amount = self._read_hour(at, read_amount(self._text, at))
        return amount or (self._read_code(at, whole) if whole and not whole.isdecimal() else [])

    def _read_word(self, at: int, whole: str) -> Iterable[Mention]:
        text, word, end = self._text, whole.lower(), at + len(whole)
        if "@" in whole or word.startswith(("http", "www.")):
            address = _ADDRESS.match(text, at)
            whole = address.group().rstrip(".,;:!?") if address is not None else whole
            return [_read_as(whole, at, Reading("code", normalize_code(whole)))]
        if text[end : end + 1] == "$" or whole in CURRENCIES or word == "kr":
            return self._read_hour(at, read_amount(text, at))
        if has_digit(whole):
            return self._read_code(at, whole)
        if word in MONTHS:
            return self._read_prose_day(at)
        if spoken := moments.find_spoken_time(text, at, self._language):
            return [_read_as(text[at : spoken[1]], at, Reading("time", spoken[0]))]
        if word in NAMED_TIMES:
            return [_read_as(whole, at, Reading("time", Time(NAMED_TIMES[word])))]
        return self._read_hour(at, read_spelled_amount(text, at, self._language))

    def _read_hour(self, at: int, amount: Mention | None) -> list[Mention]:
        """Return an amount, which may be an hour, too."""
        hour = moments.read_hour(self._text, at, amount.readings[0].number) if amount is not None else None
        if amount is None or hour is None:
            return [amount] if amount is not None else []
        return [amount._replace(readings=(*amount.readings, Reading("time", hour)))]

    def _read_code(self, at: int, text: str) -> list[Mention]:
        seconds, coded = moments.read_short_duration(text), _BASED.fullmatch(text)
        code = Reading("code", normalize_code(text))
        if coded is not None:
            number = float(int(coded[1] or coded[2], 16 if coded[1] else 2))
            return [_read_as(text, at, code, Reading("number", number))]
        if seconds is not None:
            return [_read_as(text, at, Reading("number", seconds, "time", 0.5, "", seconds), code)]
        return [_read_as(text, at, code)] if not text.startswith(_NO_CODES) else []

    def _read_iso(self, at: int) -> list[Mention]:
        match = moments.ISO.match(self._text, at)
        day = moments.read_iso_day(match["day"]) if match is not None else None
        if match is None or day is None:
            return []
        if match["time"] is None:
            return [_read_as(match["day"], at, Reading("day", day))]
        instants = list(moments.list_instants(day, match["time"], match["zone"] or ""))
        days = dict.fromkeys([Reading("day", local) for local, _ in instants])
        times = dict.fromkeys([Reading("time", time) for _, time in instants])
        clock = self._text[match.start("time") : match.end()]
        return [_read_as(match["day"], at, *days), _read_as(clock, match.start("time"), *times)] if times else []

    def _read_clock(self, at: int) -> list[Mention]:
        match = moments.CLOCK.match(self._text, at)
        if match is None or (match["sep"] == "." and not match["tail"]) or self._goes_on(match):
            return []
        in_hours = match["sep"] in ("h", " h ")
        time = moments.read_clock(match)
        if (time is None and (match["tail"] or match["sep"] != ":")) or (
            in_hours and _MINUTES.match(self._text, match.end())
        ):
            return []
        readings = [Reading("time", time)] if time is not None else []
        if match["sep"] in (":", "h", " h ") and not match["tail"]:
            hours, minutes = float(match["h"]), float(match["m"])
            seconds = hours * 3_600 + minutes * 60 + float(match["s"] or 0)
            readings.append(Reading("number", seconds, "time", 0.5, "", seconds))
            if match["sep"] == ":" and not match["s"]:
                readings.append(Reading("number", hours * 60 + minutes, "time", 0.5, "", hours * 60 + minutes))
                readings += [Reading("number", hours / minutes, "share", 0.01, "", hours)] if minutes else []
        return [_read_as(match.group(), at, *readings)]

    def _read_numeric_day(self, at: int) -> list[Mention]:
        match = moments.NUMERIC.match(self._text, at)
        if match is None or self._goes_on(match):
            return []
        if match["a"] is None and not match.group().endswith("."):
            after = TAIL.match(self._text, match.end())
            if match["short"] == "." or (after is not None and find_unit(after["word"]) is not None):
                return []
        readings = [Reading("day", day) for day in moments.read_numeric_day(match)]
        if match["short"] == "/":
            first, second = float(match["d"]), float(match["e"])
            readings += [Reading("number", first / second, "share", 0.01, "", first)] if second else []
        elif match["short"] == ".":
            decimal = float(f"{match['d']}.{match['e']}")
            readings.insert(0, Reading("number", decimal, "", 0.5 * 10.0 ** -len(match["e"]), "", decimal))
        return [_read_as(match.group().rstrip("."), at, *readings)] if readings else []

    def _read_prose_day(self, at: int) -> list[Mention]:
        match = moments.PROSE.match(self._text, at)
        days = moments.read_prose_day(match) if match is not None and not self._goes_on(match) else []
        if match is None or not days:
            return []
        if len(days) == 1:
            return [_read_as(match.group(), at, Reading("day", days[0]))]
        middle = match.start("e1" if match["e1"] else "e2")
        first, last = self._text[at:middle], self._text[middle : match.end()]
        return [_read_as(first, at, Reading("day", days[0])), _read_as(last, middle, Reading("day", days[1]))]

    def _goes_on(self, match: re.Match[str]) -> bool:
        """Whether a token goes on after what was read of it."""
        after = self._text[match.end() : match.end() + 2]
        if not after or match.group().endswith("."):
            return False
        return after[0].isalnum() or (after[0] in ".:/-" and after[1:].isdecimal())


_FIRST = re.compile(r"[^\W\d_]+")


@cache
def _list_heads(language: str = "") -> frozenset[str]:
    """List the words with which a value may start in a language, or in any: few texts have one, so few need a guess."""
    if not language:
        return frozenset[str]().union(*map(_list_heads, LANGUAGES))
    spelled = (*list_number_words(language), *MULTIPLIERS[language], *PARTS)
    known = (*spelled, *MONTHS, *NAMED_TIMES, "kr", "http", "https")
    return frozenset([word[0] for word in map(_FIRST.match, known) if word is not None])


def _read_as(text: str, at: int, *readings: Reading) -> Mention:
    return Mention(text, at, at + len(text), readings)


def _join(text: str, mentions: Iterator[Mention]) -> list[Mention]:
    """Join the parts of an amount: of a duration, of a price in whole units and cents."""
    found: list[Mention] = []
    for mention in mentions:
        before = found[-1] if found and mention.kind == found[-1].kind == "number" else None
        if before is not None and _JOINED.fullmatch(text, before.end, mention.start):
            pairs = ((one, other) for one in before.readings for other in mention.readings)
            parts = next(filter(None, (_join_parts(one, other) for one, other in pairs)), None)
            if parts is not None:
                joined = (parts, *[one for one in mention.readings if one.kind == "time"])
                found[-1] = Mention(text[before.start : mention.end], before.start, mention.end, joined, before.hedged)
                continue
        found.append(mention)
    return found


_PARTS = {("time", 3_600.0, 2): 60.0, ("mass", 1_000.0, 3): 1.0, ("length", 1.0, 2): 0.01}
"""What a bare number of so many digits counts after a unit: `2 h 15`, `2 kg 350`, `1 m 83`."""


def _join_parts(one: Reading, other: Reading) -> Reading | None:
    """Add up two numbers that are parts of one amount, such as hours and minutes: the second is less than one of the first."""
    if not one.written or one.dimension in ("", "share", "temperature", "rate") or one.kind != other.kind:
        return None
    size, unit, is_money = other.number, one.factor, one.dimension == "money"
    if not other.dimension and (part := _PARTS.get((one.dimension, unit, len(f"{size:.0f}")))):
        size *= part
    elif one.dimension != other.dimension or other.currency not in ("", one.currency):
        return None
    if not 0 < size < (1 if is_money else unit) or (is_money and one.number < 1):
        return None
    tolerance = other.tolerance * size / other.number
    return Reading("number", one.number + size, one.dimension, tolerance, one.currency, one.written + size / unit)

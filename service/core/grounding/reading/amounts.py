"""Read a number as people write it, in digits or words, with what stands around it: sign, currency, power, scale word, unit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple, cast

from service.core.grounding.reading.languages import (
    ARTICLES,
    DATA,
    HEDGES,
    MULTIPLIERS,
    PARTS,
    SCALES,
    Words,
    list_number_words,
    list_words,
)
from service.core.grounding.reading.mentions import Mention, Reading, normalize_code
from service.core.grounding.reading.units import CURRENCIES, Unit, find_unit

DIGITS = r"(?:\d{1,3}(?:[ \u00a0\u202f'\u2019]\d{3}){1,15}(?!\d)(?:[.,]\d++)?|\d++(?:[.,]\d++){0,15}+)"
"""A run of digits and separators; spaces and apostrophes only before groups of three. More groups are more than MAX_DIGITS."""
MAX_DIGITS = 30
"""Longer runs of digits are codes."""

_PLAIN = re.compile(r"\d++(?:\.(\d{1,2}|\d{4,}))?|\d{1,3}(?:,\d{3})+\.(\d+)")
_SPACES = re.compile(r"[ '\u2019\u00a0\u202f]")
_GROUPED = re.compile(r"\d{1,3}(?:([.,])\d{3})(?:\1\d{3})*+(?:[.,]\d++)?|\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d++)?")
FRACTION_SIGNS = {"½": 0.5, "¼": 0.25, "¾": 0.75, "⅓": 1 / 3, "⅔": 2 / 3, "⅛": 0.125}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺\u2212", "0123456789-+-")


class Number(NamedTuple):
    """A number as written: its size, and what one in the last place written is worth."""

    value: float
    last_place: float = 1.0


def read_digits(text: str) -> tuple[Number, ...]:
    """Return what digits with separators may mean, likeliest first; () if they are no number (a version, a list)."""
    if len(text) > MAX_DIGITS:
        return ()
    if plain := _PLAIN.fullmatch(text):
        return (Number(float(text.replace(",", "")), 10.0 ** -len(plain[1] or plain[2] or "")),)
    groups = _SPACES.split(text)
    if any(len(re.split("[.,]", group)[0]) != 3 for group in groups[1:]) or (groups[1:] and len(groups[0]) > 3):
        return ()
    text = "".join(groups)
    marks = [c for c in text if not c.isdigit()]
    if not marks:
        return (Number(float(text)),)
    if len(marks) == 1:
        whole, _, part = text.partition(marks[0])
        point, joined = _read(whole, part), _read(whole + part)
        if len(part) != 3 or len(whole) > 3 or whole.startswith("0") or groups[1:]:
            return (point,)
        return (joined, point) if marks[0] == "," else (point, joined)
    if not _GROUPED.fullmatch(text):
        return ()
    last = marks[-1]
    if len(set(marks)) == 1:
        return (_read(text.replace(last, "")),)
    whole, _, part = text.rpartition(last)
    return (_read("".join(c for c in whole if c.isdigit()), part),)


def _read(whole: str, part: str = "") -> Number:
    return Number(float(f"{whole}.{part or 0}"), 10.0 ** -len(part))


def read_power(text: str) -> float:
    """Return what an exponent multiplies by: `e-4`, ` x 10⁻⁴`, `*10^6`."""
    exponent = re.sub(r"^.*?(?:10\^?|[eE])", "", text).translate(_SUPERSCRIPTS)
    return 10.0 ** max(-100, min(100, int(exponent)))


def read_words(words: list[str], language: str) -> float | None:
    """Return the number that lower-case words spell; None if they spell none, or are an article."""
    small, multipliers = list_number_words(language), MULTIPLIERS[language]
    total = group = 0.0
    numbers = 0
    for word in words:
        if word in multipliers:
            times = multipliers[word]
            group = (group or 1) * times
            if times >= 1_000:
                total, group = total + group, 0.0
        elif word in small:
            century = language == "en" and 10 <= group < 100 and small[word] >= 10  # nineteen twenty-four
            group = group * (100 if century else 1) + small[word]
        elif word in PARTS and numbers:
            group += PARTS[word]
        elif word not in _JOINTS:
            return None
        numbers += word not in _JOINTS
    if not numbers or (len(words) == 1 and words[0] in ARTICLES):
        return None
    return total + group


_JOINTS = frozenset({"and", "und", "y", "et", "a", "an"})


_CODES = "|".join(sorted([re.escape(name) for name in CURRENCIES if not name.islower()], key=len, reverse=True))
_NUMBER = re.compile(
    rf"(?P<sign>[-+\u2212])?(?:(?P<currency>(?:{_CODES}|kr)(?![^\W\d_]))[ \u00a0\u202f]?(?P<inner>[-\u2212](?=\d))?)?"
    rf"(?P<digits>(?=\d){DIGITS}|(?=[½¼¾⅓⅔⅛]))(?P<part>[ ]?[½¼¾⅓⅔⅛])?"
    r"(?P<power>[eE][+-]?\d{1,3}(?!\w)|[ ]?[\u00d7x*·][ ]?10(?:\^[-+\u2212]?\d{1,3}|[⁻⁺]?[⁰¹²³⁴-⁹]{1,3}))?"
)
TAIL = re.compile(
    r"(?P<gap>[ \u00a0\u202f-]?)(?P<word>percentage[ ]points?|per[ ]cent|por[ ]ciento|pour[ ]cent"
    r"|[^\W\d_]++(?!\d)(?:-[^\W\d_]+)?(?:/(?:h|s|km|min))?[²³]?|[%‰€$£¥₹₩℃″\u2032]|°[ ]?[CF]?)"
)
_TOKEN = re.compile(r"[^\W_]\w*+(?:[-.:/@#+](?=[^\W_])\w++){0,40}+")
_PERCENT_WORDS = list_words("amounts", "percent")
_DEGREES = list_words("amounts", "degrees")
_NOT_UNITS = list_words("amounts", "not_units")
"""Spellings of units that in a text are mostly other words."""
_ONE_NUMBER = re.compile(r"\d{1,4}(?:s|st|nd|rd|th|er|e|º|ª|x|ish|%)?")
_SHORT_PARTS = re.compile(r"\d{1,4}(?:[.,]\d{1,2})?[-/:]\d{1,4}(?:[.,]\d{1,2})?|\d{1,2}(?:[-/:]\d{1,2}){2,}")
"""A range, a ratio, a score: several numbers, no code."""
_NUMBERING = re.compile(r"(?:^|\n)[ \t>*#-]*$")
_ORDINAL = re.compile(r"(?:s|er|st|nd|rd|th|e|ème|º|ª|\.º)\b")
_OF_A = re.compile(r"[ ](?:(?:of[ ])?an?|d['\u2019]une?|einer?|eines|de)(?=[ ])")


class Tail(NamedTuple):
    """What stands after a number: what multiplies it, its units (several where a word leaves it open), and where it ends."""

    scale: float
    units: list[Unit]
    end: int


def read_amount(text: str, at: int) -> Mention | None:
    """Read the number that starts at a character; None where what stands there is a code or the numbering of a list."""
    signed = at > 0 and text[at - 1] in "-+\u2212" and not text[at - 2 : at - 1].isalnum()
    match = (_NUMBER.match(text, at - 1) if signed else None) or _NUMBER.match(text, at)
    if match is None:
        return None
    start, digits = match.start(), match["digits"]
    tail = read_tail(text, match.end(), match["currency"])
    written = read_digits(digits) if digits else (Number(0.0),)
    heads_line = _NUMBERING.search(text[max(0, at - 8) : at]) and re.match(
        r"[.)][ \t]", text[match.end() : match.end() + 2]
    )
    if not written or heads_line or _is_code(text, at, match, tail):
        return None
    power = read_power(match["power"]) if match["power"] else 1.0
    power = -power if {"-", "\u2212"} & {match["sign"], match["inner"]} else power
    part = FRACTION_SIGNS[match["part"].strip()] if match["part"] else 0.0
    hedged = is_hedged(text, start)
    loose = _loosen(digits) if hedged else 1.0
    readings = [one for number in written for one in _build(number.value + part, number.last_place, power, tail, loose)]
    code = normalize_code(digits)
    if len(code) >= 3 and "." not in digits and not tail.units:
        readings.append(Reading("code", code))
    ordinal = not tail.units and _ORDINAL.match(text, match.end()) is not None
    return Mention(text[start : tail.end], start, tail.end, tuple(readings), hedged, ordinal)


def _is_code(text: str, at: int, number: re.Match[str], tail: Tail) -> bool:
    """Whether what begins with a number goes on as something else: `4711-09321`, `747-8F`, but not `5-10`, `3rd` or `35-cent`."""
    token = _TOKEN.match(text, at) if not number["currency"] else None
    if token is None or token.end() <= tail.end:
        return False
    whole, rest = token.group(), token.group()[number.end() - at :]
    if _ONE_NUMBER.fullmatch(whole) or _SHORT_PARTS.fullmatch(whole):
        return False
    return not (rest.startswith("-") and rest[1:].islower() and len(rest) > 3)


def read_tail(text: str, end: int, currency: str | None = None) -> Tail:
    """Read what multiplies a number and its unit, from the words after it. `currency`: the sign before it."""
    scale, units = 1.0, [find_unit(currency) or Unit("money", 1.0)] if currency else []
    for _ in range(3):
        match = TAIL.match(text, end)
        if match is None:
            break
        word, attached = match["word"], not match["gap"]
        factor = _find_scale(word, money=bool(currency), attached=attached) if scale in (1.0, 1_000.0) else None
        factor = None if factor is not None and scale > 1 and factor < 10**5 else factor  # mil millones
        if factor is None:
            found = [] if units else _find_units(word, attached=attached)
            further = TAIL.match(text, match.end()) if not units and not found and match["gap"] == " " else None
            if further is not None:  # an adjective: `US dollars`, `Swiss francs`
                found = [unit for unit in _find_units(further["word"], attached=False) if unit.dimension == "money"]
                match = further
            return Tail(scale, found, match.end()) if found else Tail(scale, units, end)
        scale, end = scale * factor, match.end()
    return Tail(scale, units, end)


def _find_scale(word: str, *, money: bool, attached: bool) -> float | None:
    scale = SCALES.get(word.lower())
    if scale is None or (len(word) == 1 and not attached) or (word in ("m", "b", "B") and not money):
        return None
    return float(scale)


def _find_units(word: str, *, attached: bool) -> list[Unit]:
    lower = word.lower()
    if lower.split(" ")[0] in _PERCENT_WORDS:
        return [Unit("share", 0.01)]
    if lower in _DEGREES:
        return [Unit("temperature", 1.0), Unit("temperature", 5 / 9, -160 / 9), Unit("angle", 1.0)]
    if word in ("bps", "bp"):
        return [Unit("rate", 1.0), Unit("share", 0.0001)]
    if lower == "p" and attached:
        return [Unit("money", 0.01, 0.0, "GBP")]
    if lower in _NOT_UNITS and not (attached and word in ("d", "t", "mi")) and word not in ("C", "F"):
        return []
    unit = find_unit(word.replace("° ", "°"))
    return [unit] if unit is not None else []


def is_hedged(text: str, start: int) -> bool:
    """Whether a number is told roughly, or as a bound: `about`, `over`, `~`."""
    before = text[max(0, start - 24) : start].lower().split()[-2:]
    return text[start - 1 : start] in ("~", "≈", "<", ">") or bool(
        before and not HEDGES.isdisjoint([word.strip("(*_") for word in before])
    )


def _loosen(digits: str) -> float:
    """Return how many times half its last place a number that is told roughly may be off: more for its last zeros."""
    return 2.0 * 10.0 ** (len(digits) - len(digits.rstrip("0")) if digits.isdecimal() else 0)


def _build(value: float, last_place: float, power: float, tail: Tail, loose: float) -> Iterator[Reading]:
    size = value * power * tail.scale
    tolerance = abs(last_place * power * tail.scale) / 2 * loose
    tolerance = max(tolerance, 0.05 * abs(size)) if loose > 1 else tolerance
    for unit in tail.units or [Unit("", 1.0)]:
        base = size * unit.factor + unit.shift
        yield Reading("number", base, unit.dimension, tolerance * unit.factor, unit.currency, size)


_ORDINALS = {word: n for n, word in enumerate(cast("str", DATA["ordinals"]).split(), 1)}


@lru_cache(maxsize=8)
def _compile_words(language: str) -> re.Pattern[str]:
    tens = (
        [f"{ten}-{rank}" for ten in cast("Words", DATA["tens"])["en"].split() for rank in _ORDINALS]
        if language == "en"
        else []
    )
    known = sorted({*list_number_words(language), *MULTIPLIERS[language], *PARTS, *tens}, key=len, reverse=True)
    word = "|".join(map(re.escape, known))
    return re.compile(
        rf"(?:{word})(?:(?:[ -]|[ ](?:and|und|y|et)[ ](?:an?[ ])?)(?:{word})\b)*+\b(?!-|[ ](?:past|to|after|nach|vor)\b)",
        re.IGNORECASE,
    )


def read_spelled_amount(text: str, at: int, language: str) -> Mention | None:
    """Read a number in words that starts at a character: `two and a half`, `three quarters of the`, `zwölf Dutzend`."""
    match = _compile_words(language).match(text, at)
    if match is None:
        return None
    words, end = match.group().lower().split(" "), match.end()
    rank = _ORDINALS.get(words[0].rpartition("-")[2]) if len(words) == 1 and text[at - 2 : at].lower() != "a " else None
    if rank is not None:
        rank += list_number_words("en").get(words[0].partition("-")[0], 0)
        readings = (Reading("number", PARTS.get(words[0], float(rank)), "share" if words[0] in PARTS else "", 0.02),)
        return Mention(match.group(), at, end, (*readings, Reading("number", float(rank))), False, ordinal=True)
    share = _read_share(words, language)
    of_a = _OF_A.match(text, end) if share is not None else None
    tail = read_tail(text, of_a.end() if of_a is not None else end)
    value = read_words(words, language) if share is None else share
    if value is None and tail.units and words[0] in ARTICLES:
        value = 1.0
    if value is None:
        return None
    if share is not None and not tail.units and tail.scale == 1.0:
        return Mention(match.group(), at, end, (Reading("number", share, "share", 0.02),), is_hedged(text, at))
    last_place = 1.0 if share is None else 0.01
    hedged = is_hedged(text, at)
    readings = tuple(_build(value, last_place, 1.0, tail, _loosen("") if hedged else 1.0))
    return Mention(text[at : tail.end], at, tail.end, readings, hedged)


def _read_share(words: list[str], language: str) -> float | None:
    """Read `half`, `three quarters`, `dos tercios`: parts of a whole."""
    if words[-1] not in PARTS or len(words) > 2:
        return None
    count = 1 if len(words) == 1 else list_number_words(language).get(words[0])
    return None if count is None else count * PARTS[words[-1]]

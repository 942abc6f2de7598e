"""List the held values that a value which stands nowhere may be meant for: those nearest in spelling, size and place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import log, log10
from typing import NamedTuple

from service.core.grounding.derive import Deriver
from service.core.grounding.fields import split_name
from service.core.grounding.known import LOOSE, KnownFacts
from service.core.grounding.origins import Nearest
from service.core.grounding.reading.mentions import Kind, Mention, Reading, is_slip, list_digits
from service.core.grounding.reading.moments import DAY_S, Day, Time
from service.core.grounding.reading.units import UNITS
from service.core.grounding.steps import POSITION, Amount, Derivation, Scene, iter_steps

MAX_NEAREST, MAX_MADE = 3, 2
_MAX_CANDIDATES = 200
_MAX_TIMES = 12
_PART_CHARS = 4
"""The fewest characters that may stand for a longer code."""
_NO_UNIT, _OTHER_UNIT = 0.15, 0.5
_SAME_SIZE = 0.01
_SPELLING, _SIZE, _UNIT, _DERIVED, _ELSEWHERE, _FIELD = 5.0, 2.0, 3.5, 1.0, 0.5, 0.5
"""What it costs to be spelled otherwise, of another size or unit, derived, of a record or field it does not name."""


_UNITS = {
    one.dimension: [
        (unit.factor, unit.shift) for unit in dict.fromkeys(UNITS.values()) if unit.dimension == one.dimension
    ]
    for one in UNITS.values()
}
"""By dimension, the factors and shifts of its units."""


class _Candidate(NamedTuple):
    """A held or derived value."""

    reading: Reading
    text: str
    pointer: str
    record: str = ""
    how: str | None = None


def list_nearest(
    mention: Mention, scene: Scene, known: KnownFacts, deriver: Deriver, *, found: bool = False
) -> tuple[Nearest, ...]:
    """Return the three values of its kind that cost least, at most two of them derived: by spelling, size, unit and place.

    `found`: something holds or makes the value itself; then only others are returned.
    """
    costs: list[tuple[float, str, _Candidate]] = []
    for one in (*_iter_held(mention, known), *_iter_made(mention, scene.steps, known, deriver)):
        spelling, size, unit = min(_compare(mention, reading, one.reading, one.text) for reading in mention.readings)
        if (one.how and spelling > 0.5) or (found and not spelling and size < _SAME_SIZE):  # there by chance; itself
            continue
        cost = _SPELLING * spelling + _SIZE * size + _UNIT * unit + (_DERIVED if one.how else _rate_place(one, scene))
        costs.append((cost, one.pointer, one))
    kept: list[Nearest] = []
    for _, _, one in sorted(costs, key=lambda each: each[:2]):
        others = [each for each in kept if one.text == each.value or (one.how and one.pointer == each.pointer)]
        if not others and (not one.how or len([each for each in kept if each.how]) < MAX_MADE):
            kept.append(Nearest(one.text, one.pointer, one.how))
        if len(kept) == MAX_NEAREST:
            break
    return tuple(kept)


def _rate_place(one: _Candidate, scene: Scene) -> float:
    """Return what it costs a held value to be of a record or a field that the sentence does not name."""
    named = one.record and any(one.record.startswith(each) or each.startswith(one.record) for each in scene.records)
    words = [word for part in one.pointer.rsplit("/", 2)[1:] for word in split_name(part) if len(word) > 2]
    told = POSITION.sub("/*", one.pointer) in scene.columns or any(word in scene.words for word in words)
    return _ELSEWHERE * (not named) + _FIELD * (not told)


def _iter_held(mention: Mention, known: KnownFacts) -> Iterator[_Candidate]:
    """Yield what the trace holds of the kinds of a value: of many, the first, those next in size and those a slip away."""
    reading, digits = mention.readings[0], list_digits(mention.text)
    kinds: set[Kind] = {reading.kind for reading in mention.readings}
    if reading.kind == "number" and not reading.dimension and len(digits) >= _PART_CHARS:
        kinds.add("code")
    facts = [fact for kind in sorted(kinds) for fact in known.list_first(kind, _MAX_CANDIDATES)]
    if reading.kind == "number":
        facts += known.list_number_slips(digits, reading.dimension)
        facts += known.list_around(reading.dimension, abs(reading.number))
    elif isinstance(reading.value, str):
        facts += [fact for _, fact in known.list_code_slips(reading.value)]
    for fact in facts:
        if fact.reading.kind != "code" or fact.whole:
            yield _Candidate(fact.reading, fact.text, fact.pointer, fact.site.record)


def _iter_made(
    mention: Mention, steps: Sequence[Derivation], known: KnownFacts, deriver: Deriver
) -> Iterator[_Candidate]:
    """Yield what may be made of what the trace holds: by a step from what stands around, of a column, of any two times."""
    kinds, dimension = {reading.kind for reading in mention.readings}, mention.dimension
    times = known.list_moments("time")[:_MAX_TIMES] if dimension == "time" else []
    pairs = combinations([Amount(fact.reading, fact.pointer) for fact in times], 2)
    between = [step for one, other in pairs for step in iter_steps(one, other)]
    totals = deriver.iter_totals(dimension) if mention.kind == "number" else ()
    first: dict[tuple[str, Reading], tuple[str, ...]] = {}
    for how, sources, reading, _ in (*steps, *between, *totals):
        first[how, reading] = min(sources, first.get((how, reading), sources))
    for (how, reading), sources in first.items():
        value = reading.value
        if reading.kind in kinds and isinstance(value, float):
            yield _Candidate(reading, f"{value:.10g}", sources[0], "", how)
        elif reading.kind in kinds and isinstance(value, Time):
            text = f"{value.seconds // 3_600:02}:{value.seconds // 60 % 60:02}"
            yield _Candidate(reading, text, sources[0], "", how)


def _compare(mention: Mention, reading: Reading, other: Reading, text: str) -> tuple[float, float, float]:
    """Return how far apart a reading and a held one, written as `text`, are: in spelling, size and unit, from 0 to 1."""
    said, held = reading.value, other.value
    if isinstance(said, Day) and isinstance(held, Day):
        swapped = (said.month, said.day) == (held.day, held.month)
        differ = sum(a != b for a, b in zip(said, held, strict=True) if a and b)
        years = bool(said.year and held.year and said.year != held.year)
        apart = abs((said.month - held.month) * 30.5 + said.day - held.day) + 366 * years
        return min(differ, 1 if swapped else 3) / 3, 0.3 if swapped else apart / (apart + 15), 0.0
    if isinstance(said, Time) and isinstance(held, Time):
        apart = abs(said.seconds - held.seconds)
        apart = min(apart, DAY_S - apart)
        a, b = (f"{one.seconds // 3_600 % 12:02}{one.seconds // 60 % 60:02}" for one in (said, held))
        return _differ(a, b), apart / (apart + 7_200) if a != b else 0.1, 0.0
    if isinstance(held, str):
        code = said if isinstance(said, str) else list_digits(mention.text)
        n = len(code)
        ends = (held, held[:n], held[-n:]) if len(held) > n >= _PART_CHARS else (held,)
        return min(_differ(code, end) for end in ends), 0.5, _NO_UNIT
    if reading.kind == other.kind == "number":
        return _compare_numbers(reading, other, text)
    return (0.5, 0.5, 0.0) if reading.kind == other.kind else (1.0, 1.0, 1.0)


def _compare_numbers(reading: Reading, other: Reading, text: str) -> tuple[float, float, float]:
    said, held, apart = abs(reading.number), abs(other.number), 0.0
    written, as_held = abs(reading.written) or said, abs(other.written) or held
    unit = reading.factor
    if reading.dimension == other.dimension:
        sizes = {as_held} if reading.dimension == "temperature" else {held / unit, as_held}
    elif other.dimension:
        sizes, apart = {as_held}, 1.0 if reading.dimension else _NO_UNIT
    else:  # in whatever unit a field that names none may be
        loose = LOOSE.get(reading.dimension, ((1.0, 0.0),))
        sizes, apart = {held, *(held * factor / unit for factor, _ in loose)}, _NO_UNIT
    if reading.dimension and reading.written and other.dimension in ("", reading.dimension):
        units, spread = _UNITS.get(reading.dimension, ()), reading.tolerance / unit
        if any(abs(abs((other.number - shift) / factor) - written) <= spread for factor, shift in units):
            return 0.0, 0.0, _OTHER_UNIT  # the right number, in another unit
    places = max(0, round(-log10(2 * reading.tolerance / unit))) if reading.tolerance else 0
    digits, raw = (each.replace(".", "").strip("0") for each in (f"{written:.{places}f}", list_digits(text)))
    found: list[tuple[float, float]] = []
    for size in sizes:
        like = f"{size:.{places}f}".replace(".", "").strip("0")
        far = abs(log(max(size, 1e-9) / max(written, 1e-9)))
        found.append((min(_differ(digits, like), _differ(digits, raw)), far / (far + 0.5)))
    return *min(found, key=sum), apart


def _differ(one: str, other: str) -> float:
    """Return which share of two texts is neither the same at their beginning nor at their end."""
    most, least = max(len(one), len(other)), min(len(one), len(other))
    if one == other:
        return 0.0
    if most - least < 2 and is_slip(one, other):
        return min(0.5, 1 / most)
    start = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), least)
    end = next((n for n, (a, b) in enumerate(zip(one[::-1], other[::-1], strict=False)) if a != b), least)
    return 1 - min(start + end, least, most - 1) / most if most else 1.0

"""List the held values that a value which stands nowhere may be meant for: those nearest in spelling, size and place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import log, log10
from typing import NamedTuple

from service.core.grounding.derive import Deriver
from service.core.grounding.known import LOOSE, KnownFacts
from service.core.grounding.origins import Nearest
from service.core.grounding.reading.mentions import Kind, Mention, Reading, is_slip, list_digits
from service.core.grounding.reading.moments import DAY_S, Day, Time
from service.core.grounding.reading.units import UNITS
from service.core.grounding.steps import POSITION, Amount, Derivation, Scene, iter_steps

MAX_NEAREST = 3
_MAX_CANDIDATES = 200
_MAX_TIMES = 12
_FAR = 12.0
"""How many times larger or smaller what is made may be."""
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
    """Return the three values of its kind that cost least: by spelling, size, unit and place.

    `found`: something holds or makes the value itself; then list only others.
    """
    kinds: set[Kind] = {reading.kind for reading in mention.readings}
    facts = [fact for kind in sorted(kinds) for fact in known.list_first(kind, _MAX_CANDIDATES)]
    held = [_Candidate(fact.reading, fact.text, fact.pointer, fact.site.record) for fact in facts]
    costs: list[tuple[float, str, _Candidate]] = []
    for one in (*held, *_iter_made(mention, scene.steps, known, deriver)):
        spelling, size, unit = min(_compare(mention, reading, one.reading) for reading in mention.readings)
        if (one.how and spelling > 0.5) or (found and not spelling and size < _SAME_SIZE):  # there by chance; itself
            continue
        place = _DERIVED
        if one.how is None:
            named = one.record and any(
                one.record.startswith(each) or each.startswith(one.record) for each in scene.records
            )
            place = _ELSEWHERE * (not named) + _FIELD * (POSITION.sub("/*", one.pointer) not in scene.columns)
        costs.append((_SPELLING * spelling + _SIZE * size + _UNIT * unit + place, one.pointer, one))
    kept: list[Nearest] = []
    for _, _, one in sorted(costs, key=lambda each: each[:2]):
        if not any(one.text == each.value or (one.how and one.pointer == each.pointer) for each in kept):
            kept.append(Nearest(one.text, one.pointer, one.how))
        if len(kept) == MAX_NEAREST:
            break
    return tuple(kept)


def _iter_made(
    mention: Mention, steps: Sequence[Derivation], known: KnownFacts, deriver: Deriver
) -> Iterator[_Candidate]:
    """Yield what may be made of what the trace holds: by a step from what stands around, of a column, of any two times."""
    dimension = mention.dimension
    times = known.list_moments("time")[:_MAX_TIMES] if dimension == "time" else []
    pairs = combinations([Amount(fact.reading, fact.pointer) for fact in times], 2)
    between = [step for one, other in pairs for step in iter_steps(one, other)]
    totals = deriver.iter_totals(dimension) if mention.kind == "number" else ()
    first: dict[tuple[str, Reading], tuple[str, ...]] = {}
    for how, sources, reading, _ in (*steps, *between, *totals):
        first[how, reading] = min(sources, first.get((how, reading), sources))
    sizes = [abs(size) for one in mention.readings for size in (one.number, one.written) if size]
    for (how, made), sources in first.items():
        if any(size / _FAR <= abs(made.number) <= size * _FAR for size in sizes):
            yield _Candidate(made, f"{made.number:.10g}", sources[0], "", how)


def _compare(mention: Mention, reading: Reading, other: Reading) -> tuple[float, float, float]:
    """Return how far apart a reading and a held one are: in spelling, size and unit, from 0 to 1."""
    said, held = reading.value, other.value
    if isinstance(said, Day) and isinstance(held, Day):
        differ = sum(a != b for a, b in zip(said, held, strict=True) if a and b)
        years = bool(said.year and held.year and said.year != held.year)
        apart = abs((said.month - held.month) * 30.5 + said.day - held.day) + 366 * years
        return differ / 3, apart / (apart + 15), 0.0
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
        return _compare_numbers(reading, other)
    return (0.5, 0.5, 0.0) if reading.kind == other.kind else (1.0, 1.0, 1.0)


def _compare_numbers(reading: Reading, other: Reading) -> tuple[float, float, float]:
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
    digits = f"{written:.{places}f}".replace(".", "").strip("0")
    found: list[tuple[float, float]] = []
    for size in sizes:
        like = f"{size:.{places}f}".replace(".", "").strip("0")
        far = abs(log(max(size, 1e-9) / max(written, 1e-9)))
        found.append((_differ(digits, like), far / (far + 0.5)))
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

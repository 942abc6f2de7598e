"""List the held values that a value which stands nowhere may be meant for: those nearest in spelling, size and place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, takewhile
from math import log
from typing import NamedTuple

from service.core.grounding.derive import Deriver
from service.core.grounding.fact_index import LOOSE, FactIndex
from service.core.grounding.fields import split_name
from service.core.grounding.reading.mentions import Mention, Reading
from service.core.grounding.reading.moments import DAY_S, Day, Time
from service.core.grounding.slips import is_slip, list_digits
from service.core.grounding.steps import Amount, Scene, Step, iter_steps
from service.core.models.light import light

MAX_NEAREST = 3
_MAX_CANDIDATES = 200
_WEIGHTS = (5.2, 2.2, 0.7, 3.5, 0.25, 0.3, 0.3, 0.5, 0.5)
"""What it costs: another spelling, size; no unit, another unit, a weak source, derived, told already, no word, no record beside."""


@light
class Nearest:
    """A held value: its text and its pointer, or how it would be derived."""

    value: str
    pointer: str
    how: str | None = None


class _Candidate(NamedTuple):
    """A held or derived value."""

    reading: Reading
    text: str
    pointer: str
    name: str = ""
    record: str = ""
    source: str = "result"
    how: str | None = None


def list_nearest(
    mention: Mention, scene: Scene, steps: Sequence[Step], index: FactIndex, deriver: Deriver
) -> tuple[Nearest, ...]:
    """Return the three values of its kind that cost least: by spelling, size, unit, and the words and records beside it."""
    records = {one.record for one in scene.inside if one.record}
    ordered: list[tuple[float, str, Nearest]] = []
    for one in _iter_candidates(mention, scene, steps, index, deriver):
        cost = sum(w * f for w, f in zip(_WEIGHTS, measure_features(mention, one, scene, records), strict=True))
        ordered.append((cost, one.pointer, Nearest(one.text, one.pointer, one.how)))
    ordered.sort(key=lambda one: one[:2])
    kept: dict[str, Nearest] = {}
    for _, _, near in ordered:
        kept.setdefault(near.value, near)
    return tuple(kept.values())[:MAX_NEAREST]


def measure_features(mention: Mention, one: _Candidate, scene: Scene, records: Collection[str]) -> tuple[float, ...]:
    """Return how far a candidate is in each respect, from 0 to 1."""
    spelling, size, unit = min(_compare(mention, reading, one) for reading in mention.readings)
    words = set(split_name(one.name))
    named = len(words & set(scene.words)) / len(words) if words else 0.0
    near = (
        any(one.record.startswith(record) or record.startswith(one.record) for record in records)
        if one.record
        else False
    )
    return (
        spelling, size, float(unit == 0.5), float(unit == 1), float(one.source not in ("result", "error")), float(one.how is not None),
        float(one.pointer in scene.told and one.how is None), 1 - named, float(not near),
    )  # fmt: skip


def _compare(mention: Mention, reading: Reading, one: _Candidate) -> tuple[float, float, float]:
    """Return how far apart the spellings, the sizes and the units of a reading and a candidate are."""
    said, held = reading.value, one.reading.value
    if reading.kind == "weekday":
        return 0.5, 0.5, 0.0
    if isinstance(said, Day) and isinstance(held, Day):
        apart = abs((said.month - held.month) * 30.5 + said.day - held.day) + 366 * bool(
            said.year and held.year and said.year != held.year
        )
        swapped = (said.month, said.day) == (held.day, held.month)
        differ = sum(a != b for a, b in zip(said, held, strict=True) if a and b)
        return min(differ, 1 if swapped else 3) / 3, 0.3 if swapped else apart / (apart + 15), 0.0
    if isinstance(said, Time) and isinstance(held, Time):
        apart = abs(said.seconds - held.seconds)
        apart = min(apart, DAY_S - apart)
        a, b = (f"{one.seconds // 3600 % 12:02}{one.seconds // 60 % 60:02}" for one in (said, held))
        return _differ(a, b), apart / (apart + 7200) if a != b else 0.1, 0.0
    if isinstance(held, str):
        code = (
            said
            if isinstance(said, str)
            else list_digits(mention.text)
            if reading.kind == "number" and not reading.dimension
            else ""
        )
        n = len(code)
        ends = [held] if n == len(held) or n < 4 else [held, held[:n], held[-n:]]
        return min(_differ(code, end) for end in ends), 0.5, 0.5
    if not isinstance(said, float) or not isinstance(held, float) or reading.kind != one.reading.kind:
        return 1.0, 1.0, 1.0
    return _compare_numbers(reading, mention, one)


def _compare_numbers(reading: Reading, mention: Mention, one: _Candidate) -> tuple[float, float, float]:
    said, held = abs(reading.number), abs(one.reading.number)
    unit = said / abs(reading.written) if reading.written else 1.0
    written = abs(reading.written) or said
    mine, other = reading.dimension, one.reading.dimension
    places = max(0, round(-log(max(2 * reading.tolerance / unit, 1e-12), 10))) if reading.tolerance else 0
    if mine == other:
        sizes = (
            {held / unit, abs(one.reading.written) or held}
            if mine != "temperature"
            else {abs(one.reading.written) or held}
        )
        apart = 0.0
    elif other:
        sizes, apart = {abs(one.reading.written) or held}, 1.0 if mine else 0.5
    else:
        sizes, apart = {held, *(held * factor / unit for factor, _ in LOOSE.get(mine, ()))}, 0.5
    best = (2.0, 1.0, 1.0)
    raw = list_digits(one.text).rstrip("0") if one.how is None else ""
    digits = f"{written:.{places}f}".replace(".", "").strip("0")
    for size in sizes:
        like = f"{size:.{places}f}".replace(".", "").strip("0")
        spelling = min(_differ(digits, each) for each in (like, raw) if each or not raw)
        far = abs(log(max(size, 1e-9) / max(written, 1e-9)))
        best = min(best, (spelling + far / (far + 0.5), spelling, far / (far + 0.5)))
    return best[1], best[2], apart


def _differ(one: str, other: str) -> float:
    """Return which share of two texts is neither the same at their beginning nor at their end."""
    most, least = max(len(one), len(other)), min(len(one), len(other))
    if one == other:
        return 0.0
    if is_slip(one, other):
        return min(0.5, 1 / most)
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    end = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one[::-1], other[::-1], strict=False)))
    return 1 - min(start + end, least, most - 1) / most if most else 1.0


def _iter_candidates(
    mention: Mention, scene: Scene, steps: Sequence[Step], index: FactIndex, deriver: Deriver
) -> Iterator[_Candidate]:
    kinds: set[str] = {reading.kind for reading in mention.readings}
    reading = mention.readings[0]
    if reading.kind == "number" and not reading.dimension and len(list_digits(mention.text)) > 3:
        kinds.add("code")
    facts = [
        fact
        for kind in sorted(kinds)
        for fact in index.list_first(kind, _MAX_CANDIDATES)
        if kind != "code" or fact.whole
    ]
    if reading.kind == "number":
        facts += index.list_number_slips(list_digits(mention.text), reading.dimension)
        facts += index.list_around(reading.dimension, abs(reading.number))
    elif isinstance(reading.value, str):
        facts += [fact for _, fact in index.list_code_slips(reading.value)]
    for fact in facts:
        yield _Candidate(fact.reading, fact.text, fact.pointer, fact.name, fact.place.record, fact.source)
    if "weekday" in kinds:
        days = [one for one in (*scene.inside, *scene.before, *scene.beside) if one.reading.kind == "day"]
        for one in days + [Amount(fact.reading, fact.pointer) for fact in index.list_days()][:3]:
            day = one.reading.value
            if isinstance(day, Day) and day.date:
                yield _Candidate(
                    Reading("weekday", float(day.date.weekday())),
                    f"{day.date:%A}",
                    one.pointer,
                    how="weekday",
                    record=one.record,
                )
    if reading.dimension == "time":
        times = [Amount(fact.reading, fact.pointer) for fact in index.list_times()][:12]
        steps = [*steps, *(step for one, other in combinations(times, 2) for step in iter_steps(one, other))]
    if reading.kind == "number":
        for total, origin in deriver.list_totals(reading.dimension):
            yield _Candidate(
                Reading("number", total, reading.dimension), f"{total:.10g}", origin.sources[0], how=origin.how
            )
    for step in steps:
        if step.reading.kind in kinds:
            value = step.reading.value
            text = (
                f"{value:.10g}"
                if isinstance(value, float)
                else f"{value.seconds // 3600}:{value.seconds // 60 % 60:02}"
            )
            yield _Candidate(step.reading, text, step.sources[0], how=step.how)

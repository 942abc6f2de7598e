"""Locate dates and times among the arguments, and check them against the user's words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from service.core.evidence.provenance.located import LeafOrigin, contradict, leave_open, locate_at, suspect
from service.core.evidence.provenance.parameters import CallParameter
from service.core.evidence.provenance.sources import Mention, SourceIndex
from service.core.evidence.reading.dates import is_same_day
from service.core.evidence.reading.quantities import Quantity, Value
from service.core.evidence.reading.words import flatten_text, split_words

NEAR = 90
"""A date without a year is unambiguous if it is within this many days of today."""
_LOOSE = split_words(
    "flexible before after within week weeks weekend any later earlier nights night days day return returning month "
    "next previous following today yesterday tomorrow remind reminder"
)
"""Words anywhere in the user's texts that leave room between the date said and the date meant."""
_LOOSE_BESIDE = split_words("around about or between until from to through by since and start end")
"""Words that leave such room only right beside the date."""

_ROLES = split_words(
    "end until expiry expires expiration due deadline return checkout birth birthday dob created updated ordered "
    "purchased purchase issued since before after reminder"
)
"""Words in the name of a parameter whose day may follow from the one the user gives, or be about something else."""
_PAST = split_words("was were had born bought ordered purchased received delivered paid arrived started year years")
"""Words of a text that says when something happened."""
_DAY_CHARS = len("2024-05-20")


def locate_date(
    path: str, quantity: Quantity, parameter: CallParameter, sources: SourceIndex, before: int, *, alone: bool
) -> LeafOrigin:
    """Locate a date: as a result or text gives it, as the user's words mean it, or in contradiction to them.

    `alone`: it is the call's only date. It is contradicted only if the user plainly gave one date and this is another.
    """
    day = str(quantity.value)
    exact = sources.find_mentions(day, before)
    today = [m for m in exact if m.place.origin == "system" and _is_reference(day, sources)]
    if len(exact) > len(today):
        return locate_at(path, exact[0].place)
    said = [m for m in sources.list_said_before(before) if m.quantity.kind == "date"]
    for mention in said:
        if any(is_same_day(day, str(option)) for option in mention.quantity.values):
            return _locate_with_year(path, quantity, parameter, mention, sources)
    counted = _locate_counted(path, day, said, sources.list_said_before(before))
    if counted is not None:
        return counted
    if any(is_same_day(day, str(m.quantity.value)) for m in sources.list_yearless_dates(before)):
        return leave_open(path, "a day that results give without its year")
    if alone and _is_plain(said, sources, before):
        return _contradict(path, quantity, parameter, said[-1])
    return locate_at(path, today[0].place) if today else leave_open(path, "a date that no text and no result holds")


def _is_reference(day: str, sources: SourceIndex) -> bool:
    return sources.reference is not None and day == sources.reference.isoformat()


def _locate_counted(path: str, day: str, said: Sequence[Mention], stated: Sequence[Mention]) -> LeafOrigin | None:
    """Find a day of the user's that is as many days away as the user says: `from May 20, for 3 nights`."""
    if day.startswith("--"):
        return None
    spans = {int(m.quantity.number or 0) * (7 if m.quantity.unit == "week" else 1): m for m in stated if _is_span(m)}
    for mention in said:
        start = str(mention.quantity.value)
        start = day[:4] + start[1:] if start.startswith("--") else start
        try:
            apart = abs((date.fromisoformat(day) - date.fromisoformat(start)).days)
        except ValueError:  # 29 February of a year that has none
            continue
        if apart in spans:
            return locate_at(path, mention.place, "date arithmetic")
    return None


def _is_span(mention: Mention) -> bool:
    number, unit = mention.quantity.number, mention.quantity.unit
    return number is not None and 0 < number < 1_000 and number == int(number) and unit in ("", "day", "week")


def _locate_with_year(
    path: str, quantity: Quantity, parameter: CallParameter, mention: Mention, sources: SourceIndex
) -> LeafOrigin:
    said, day, reference = str(mention.quantity.value), str(quantity.value), sources.reference
    if not said.startswith("--"):
        return locate_at(path, mention.place, "date")
    nearest = _find_nearest(said, reference) if reference is not None and not day.startswith("--") else None
    if nearest is not None and reference is not None and _is_another(nearest, day, reference):
        note = f"the user said {mention.quantity.text} and it is {reference.isoformat()}, the argument is {day}"
        return _judge(path, quantity, parameter, mention, note)
    return locate_at(path, mention.place, "year added")


def _is_another(nearest: date, day: str, reference: date) -> bool:
    return nearest.isoformat() != day and abs((nearest - reference).days) <= NEAR


def _find_nearest(said: str, reference: date) -> date | None:
    found: list[date] = []
    for year in (reference.year - 1, reference.year, reference.year + 1):
        try:
            found.append(date(year, int(said[2:4]), int(said[5:7])))
        except ValueError:  # 29 February, or a year beyond the calendar
            continue
    return min(found, key=lambda day: abs((day - reference).days), default=None)


def _is_plain(said: Sequence[Mention], sources: SourceIndex, before: int) -> bool:
    """Whether the user gave a single, unambiguous day, not used by an earlier call, in words that leave no room."""
    days = {mention.quantity.values for mention in said}
    if len(days) != 1 or not said:
        return False
    ambiguous = len(said[-1].quantity.values) > 1 and sources.reference is None
    if ambiguous or sources.is_spent(said[-1].quantity.values, before):
        return False
    distinct = {(mention.place.pointer, mention.quantity.text): mention for mention in said}
    if any(_list_words_beside(mention) & _LOOSE_BESIDE for mention in distinct.values()):
        return False
    return not any(_LOOSE & sources.list_words_beside_dates(place) for place in sources.iter_user_texts(before))


def _list_words_beside(mention: Mention) -> set[str]:
    """Return the words right before and after a mention."""
    left, _, right = mention.place.text.partition(flatten_text(mention.quantity.text))
    return {*left.split()[-1:], *right.split()[:1]}


def _contradict(path: str, quantity: Quantity, parameter: CallParameter, mention: Mention) -> LeafOrigin:
    meant = " or ".join(str(option) for option in mention.quantity.values)
    shown = mention.quantity.text if mention.quantity.text == meant else f"{mention.quantity.text} ({meant})"
    note = f"the user said {shown}, the argument is {quantity.value}"
    return _judge(path, quantity, parameter, mention, note)


def _judge(path: str, quantity: Quantity, parameter: CallParameter, mention: Mention, note: str) -> LeafOrigin:
    """Contradict a date, or only suspect it if the user may mean something else or a time zone may shift it by a day."""
    moved = len(quantity.text) > _DAY_CHARS and any(_is_beside(quantity, option) for option in mention.quantity.values)
    if moved or _ROLES & set(parameter.words) or _PAST & set(mention.place.text.split()):
        return suspect(path, note, mention.place)
    return contradict(path, mention.place, "wrong_date", note)


def _is_beside(quantity: Quantity, option: Value) -> bool:
    try:
        apart = date.fromisoformat(str(quantity.value)) - date.fromisoformat(str(option))
    except ValueError:  # one without a year
        return True
    return abs(apart.days) <= 1


def locate_time(path: str, quantity: Quantity, sources: SourceIndex, before: int) -> LeafOrigin:
    """Locate a time of day exactly as somebody gave it."""
    found = sources.find_mentions(quantity.value, before)
    return locate_at(path, found[0].place) if found else leave_open(path, "a time that no text and no result holds")

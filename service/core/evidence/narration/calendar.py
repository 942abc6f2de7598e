"""Find dates with the wrong weekday beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from service.core.evidence.facts.entities import Holdings, list_days, name_weekday
from service.core.evidence.narration.verdicts import Ruling, Saying
from service.core.evidence.reading.dates import WEEKDAYS, is_same_day
from service.core.evidence.reading.quantities import Quantity

_NAMES = "|".join(WEEKDAYS)
_YEAR = re.compile(r"\b(?:(?:19|20)\d\d(?![-\d])|(?:last|next|previous|following) year)\b", re.IGNORECASE)
_BEFORE = re.compile(rf"\b({_NAMES})(?:,| \(|,? the| )+ ?$", re.IGNORECASE)
_AFTER = re.compile(rf"^(?:,| \(| is a| was a| )+({_NAMES})\b", re.IGNORECASE)


def check_weekdays(text: str, quantities: Sequence[Quantity], holdings: Holdings) -> Iterator[Saying]:
    """Find dates beside the name of another weekday. The year must be given by the text or by a result with that day."""
    for said in quantities:
        beside = _find_beside(text, said) if said.kind == "date" else ""
        if not beside:
            continue
        known = [
            (fact, day)
            for fact in holdings.dated
            for day in list_days(fact)
            if any(is_same_day(day, str(one)) for one in said.values)
        ]
        if not has_year(said) and _YEAR.search(text, max(0, said.start - 80), said.end + 80):
            continue
        years = {str(one)[:10] for one in said.values if not str(one).startswith("--")} or {day for _, day in known}
        name = name_weekday(min(years)) if len(years) == 1 else ""
        if name not in (beside, ""):
            note = f"the text says {beside.capitalize()}, {min(years)} is a {name.capitalize()}"
            ruling = Ruling("contradicted", known[0][0].pointer if known else None, None, "wrong_weekday", note, None)
            yield Saying(said.start, said.end, said.text, ruling)


def has_year(said: Quantity) -> bool:
    """Whether a date includes its year."""
    return all(str(one)[:2] != "--" for one in said.values)


def _find_beside(text: str, said: Quantity) -> str:
    before, after = text[max(0, said.start - 16) : said.start], text[said.end : said.end + 16]
    beside = _BEFORE.search(before) or _AFTER.search(after)
    return beside[1].lower() if beside else ""

"""Find tool names that are easily mistaken for one another."""

from __future__ import annotations

from collections.abc import Iterable

from rapidfuzz import process
from rapidfuzz.distance import JaroWinkler

from service.core.case import fold_name
from service.core.work_limits import MAX_NAME_CHARS, Meter

MAX_NAMES_BY_WORD = 200
"""The largest catalogue that is also searched for words in common; larger ones are searched by similarity alone."""


def find_near(
    name: str, others: Iterable[str], *, least: float = 0.8, most: int = 3, meter: Meter | None = None
) -> list[str]:
    """Return the names close to `name`, closest first: Jaro-Winkler similarity of at least `least`, or a word in common.

    Of a long name, only the beginning is compared and returned. Where `meter` has no room for another search, the result is [].

    >>> find_near("refund_order", ["void_charge", "refund_orders", "cancel_order"])
    ['refund_orders', 'cancel_order']
    """
    candidates, meter = list(others), meter or Meter()
    if not meter.can_afford("names", len(candidates)):
        return []
    meter.spend("names", len(candidates))
    name, known = _cut(name), [_cut(other) for other in candidates if other != name]
    found = process.extract(
        name, known, scorer=JaroWinkler.similarity, processor=fold_name, score_cutoff=least, limit=most
    )
    close = [other for other, _, _ in sorted(found, key=lambda one: (-one[1], one[0]))]
    words = _list_words(name)
    related = [other for other in known if words & _list_words(other)] if len(known) <= MAX_NAMES_BY_WORD else []
    return list(dict.fromkeys([*close, *sorted(related)]))[:most]


def _cut(name: str) -> str:
    return name if len(name) <= MAX_NAME_CHARS else name[: MAX_NAME_CHARS - 1] + "…"


def _list_words(name: str) -> set[str]:
    return {word for word in fold_name(name).split("_") if len(word) > 3}

"""Switch off an origin, a form of derivation or a form of finding, to see what it is worth.

What is switched off is left out where it comes out; a value that could have been derived in another way is not tried again.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from service.core.grounding import ground, texts
from service.core.grounding.derive import Deriver
from service.core.grounding.fact_index import FactIndex

FORMS = {
    "found": ("rounded", "unit", "minor units", "part"),
    "derived": ("", "sum", "mean", "difference", "product", "ratio", "count", "weekday",
                "days between", "time between"),
    "given": ("",),
    "general": ("",),
    "proved": ("scale_slip", "other_value_than_done", "claimed_action_not_taken"),
    "suspected": (
        "suspected_other_value",
        "suspected_action_not_taken",
        "suspected_slip",
        "claimed_success_after_error",
    ),
}  # fmt: skip
"""By sort, all forms; "" stands for the whole sort."""
_MANY = 64
_find, _derive, _keep_first = FactIndex.find, Deriver.derive, texts._keep_first


def switch_off(sort: str, form: str) -> AbstractContextManager[Any]:
    """Do without one form as long as the context lasts."""

    def find(self: FactIndex, reading: Any, *, limit: int = 4) -> list[Any]:
        near = _find(self, reading, limit=_MANY)
        kept = [one for one in near if (one.how != form if form else one.fact.source in ("result", "error"))]
        return kept[:limit]

    def derive(self: Deriver, *given: Any) -> Any:
        origin = _derive(self, *given)
        return None if origin is not None and form in ("", origin.how) else origin

    def keep_first(findings: Any) -> Any:
        return _keep_first([one for one in findings if (one.code, one.proved) != (form, sort == "proved")])

    if sort in ("found", "given"):
        return patch.object(FactIndex, "find", find)
    if sort == "derived":
        return patch.object(Deriver, "derive", derive)
    if sort == "general":
        return patch.object(ground, "_is_general", lambda *_: False)
    return patch.object(texts, "_keep_first", keep_first)

"""Assertions about what calls and cases took, in everyday words: `p95 duration of search <= 800 ms`."""

from __future__ import annotations

import re
from typing import NamedTuple

_QUANTITIES = {
    "duration": "duration_s",
    "cost": "cost_usd",
    "input tokens": "input_tokens",
    "output tokens": "output_tokens",
}
_FOLDS = {"median": "p50", "mean": "avg", "average": "avg"}
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "min": 60.0, "usd": 1.0, "$": 1.0, "cents": 0.01}
_UNITS_OF = {"duration": ("ms", "s", "min"), "cost": ("", "usd", "$", "cents")}
_PLAIN = re.compile(
    r"(?P<fold>p\d{1,2}|p100|median|mean|average|avg|min|max|total)\s+"
    r"(?P<quantity>duration|cost|input tokens|output tokens)(?:\s+of\s+(?P<tool>\S.*?))?\s*"
    r"(?P<op>>=|<=|==|!=|>|<)\s*(?P<dollar>\$?)(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-z$]*)",
    re.IGNORECASE,
)


class UsageAssertion(NamedTuple):
    """The metric's name, the comparison, and the number in seconds, dollars or tokens."""

    name: str
    op: str
    number: float


def parse_usage_assertion(text: str) -> UsageAssertion | None:
    """Parse an assertion in these words; None for any other text. ValueError for a unit that does not fit.

    >>> parse_usage_assertion("p95 duration of search <= 800 ms")
    UsageAssertion(name='tool.search.p95_duration_s', op='<=', number=0.8)
    >>> parse_usage_assertion("total cost < $2"), parse_usage_assertion("pass_rate >= 0.9")
    (UsageAssertion(name='total_cost_usd', op='<', number=2.0), None)
    """
    found = _PLAIN.fullmatch(text)
    if found is None:
        return None
    quantity, unit = found["quantity"].lower(), (found["unit"] or found["dollar"]).lower()
    units = _UNITS_OF.get(quantity, ("",))
    if unit not in units:
        raise ValueError(
            f"{quantity} is in {', '.join(filter(None, units)) or 'whole tokens'}; not {unit or 'a bare number'}"
        )
    fold = found["fold"].lower()
    name = f"{_FOLDS.get(fold, fold)}_{_QUANTITIES[quantity]}"
    tool = f"tool.{found['tool']}." if found["tool"] else ""
    return UsageAssertion(tool + name, found["op"], float(found["number"]) * _UNITS[unit])

"""Facts that are computed from a result by a formula, so that right wordings are true and wrong ones false by the data.

A formula is an expression over the members of the result, `a` to `z` for the records of the scene's list, `now`, and the names
in `_TOOLS`; members are attributes: `sum(i.price for i in items if not i.paid)`.

>>> compute("len([i for i in items if i.paid])", {"items": [{"paid": True}, {"paid": False}]}, [], now=date(2026, 1, 1))
1
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo


class Record(dict[str, Any]):
    """An object of JSON whose members are attributes."""

    def __getattr__(self, name: str) -> Any:
        return self[name]


def compute(formula: str, result: Any, records: list[Any], *, now: date) -> Any:
    """The value of a formula."""
    letters = {chr(ord("a") + n): _open(record) for n, record in enumerate(records)}
    names = {**_TOOLS, **letters, **_open(result), "now": now}
    return eval(formula, {"__builtins__": {}, **names})  # noqa: S307 - formulas are the benchmark's own


def _open(value: Any) -> Any:
    if isinstance(value, dict):
        return Record({key: _open(each) for key, each in value.items()})
    return [_open(each) for each in value] if isinstance(value, list) else value


def _read_day(text: str) -> date:
    return date.fromisoformat(text[:10])


def read_moment(value: str | float, zone: str = "") -> datetime:
    """A moment from ISO text, a time of day or seconds since 1970; in a zone, where one is given."""
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, ZoneInfo(zone or "UTC"))
    moment = datetime.fromisoformat(value if "T" in value else f"2026-01-01T{value}")
    return moment.astimezone(ZoneInfo(zone)) if zone else moment


_TOOLS = {
    "all": all,
    "any": any,
    "at": read_moment,
    "day": _read_day,
    "float": float,
    "int": int,
    "len": len,
    "max": max,
    "min": min,
    "round": round,
    "set": set,
    "sorted": sorted,
    "sum": sum,
}

"""Render templates to text, with numbers, times and names as pages write them. This knows no requests: pages need no service."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from service.core.money import Cost, format_usd
from service.reading.packaged_files import explain
from service.reporting.numbers import render_number
from service.web.trace.marks import escape_invisible

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
STATIC = HERE / "static"

MEDIA = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""The media types of the files that are served, by suffix."""


@cache
def build_environment() -> Environment:
    """Build the environment of the templates: everything is escaped, and an undefined name is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (load it only for the first page)

    environment = Environment(
        loader=FileSystemLoader([HERE / "templates", HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    environment.filters["static"] = find_static_url
    return environment


def render_template(name: str, **values: object) -> str:
    """Render a template, by its path below `service/web/templates` or `service/web`."""
    return build_environment().get_template(name).render(values)


def find_static_url(name: str) -> str:
    """Return the URL of a static file; KeyError if there is none of that name."""
    return list_static()[name].url


class StaticFile(NamedTuple):
    """A static file of ours. Its URL changes whenever it does, so browsers may cache it for ever."""

    body: bytes
    media: str
    url: str


@cache
def list_static() -> dict[str, StaticFile]:
    """Read all static files, by name: a request for another name caches nothing, and touches no file."""
    bodies = {one: one.read_bytes() for one in STATIC.iterdir() if one.suffix in MEDIA}
    return {
        file.name: StaticFile(body, MEDIA[file.suffix], f"/static/{file.name}?v={sha256(body).hexdigest()[:12]}")
        for file, body in bodies.items()
    }


_OURS = re.compile(r"(batch|score)_[0-9a-f]{24}([0-9a-f]{8})(?:/(\d+))?")

STATUS_WORDS = {
    "in_progress": "running",
    "finalizing": "finishing",
    "cancelling": "being cancelled",
    "paused_budget": "paused: budget",
    "paused_provider": "paused: provider",
}
"""States of a job that pages write differently."""


def format_share(value: float | None) -> str:
    """Format a share as a percentage, with a non-breaking space; "-" for None. Only 0 and 1 have no decimal.

    >>> format_share(0.12345), format_share(0.39), format_share(0.99999), format_share(1.0), format_share(None)
    ('12.3\xa0%', '39.0\xa0%', '99.9\xa0%', '100\xa0%', '-')
    """
    if value is None:
        return "-"
    if value in (0, 1):
        return f"{value * 100:.0f}\xa0%"
    return f"{min(max(value * 100, 0.1), 99.9):.1f}\xa0%"


def format_count(value: int | None) -> str:
    """Format a whole number with thin spaces between thousands.

    >>> format_count(100000)
    '100\u202f000'
    """
    return "-" if value is None else f"{value:,}".replace(",", "\u202f")


def format_time(value: str | None) -> str:
    """Format an RFC 3339 time to the minute, in UTC.

    >>> format_time("2026-11-23T04:25:34.123Z")
    '2026-11-23 04:25 UTC'
    """
    if value is None:
        return "-"
    return f"{datetime.fromisoformat(value):%Y-%m-%d %H:%M} UTC"


def shorten_item(value: str) -> str:
    """Shorten the id of an item: for one of a batch, the end of the batch's id and the item's position.

    >>> (
    ...     shorten_item("batch_01a2074fe3de7cbceca8dd0f9a1e4957/28"),
    ...     shorten_item("score_01a2074fe3de7cbceca8dd0f9a1e4957"),
    ... )
    ('item 28 of …9a1e4957', 'score …9a1e4957')
    """
    match = _OURS.fullmatch(value)
    if match is None:
        return value
    return f"{match[1]} …{match[2]}" if match[3] is None else f"item {match[3]} of …{match[2]}"


def describe_status(value: str) -> str:
    """Return the state of a job in words."""
    return STATUS_WORDS.get(value, value)


def part_difference(text: str, other: str) -> tuple[str, str, str]:
    """Part a text into what another begins with too, what differs, and what the other ends with too.

    Texts that have nothing in common but quotes differ as a whole, so no part is marked.

    >>> part_difference('"2026-03-13"', '"2026-03-06"'), part_difference("5403", "54030"), part_difference('"a"', '"b"')
    (('"2026-03-', '13', '"'), ('5403', '', ''), ('"a"', '', ''))
    """
    start = _count_equal(text, other)
    end = _count_equal(text[start:][::-1], other[start:][::-1])
    if start + end <= 2:
        return text, "", ""
    return text[:start], text[start : len(text) - end], text[len(text) - end :]


def _count_equal(one: str, other: str) -> int:
    """Count the characters that both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


FILTERS: Mapping[str, Callable[..., object]] = MappingProxyType(
    {
        "share": format_share,
        "score": render_number,
        "usd": format_usd,
        "cost": Cost.read,
        "count": format_count,
        "time": format_time,
        "item": shorten_item,
        "status": describe_status,
        "visible": escape_invisible,
        "explained": explain,
        "parted": part_difference,
    }
)

"""`callgrade cache stats`: what the cache holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import console, reading_console
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from service.asking.cache.guard import CacheStats, GuardedCache


@command(10)
def show_stats(
    output_format: Annotated[
        Literal["table", "json"], typer.Option("--format", "-f", help="How it is written.")
    ] = "table",
) -> int:
    """Say where the cache is, how many judgements it holds and how large it is."""
    # The counts are those of this look alone: a server tells its own in its metrics.
    import json

    from rich.table import Table
    from rich.text import Text

    from service.cli.own_cache import use_cache

    found = use_cache(_measure)
    if output_format == "json":
        console().print(json.dumps(asdict(found)), soft_wrap=True)
        return ExitCode.PASSED
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for name, value in _lines(found):
        table.add_row(name, Text(escape_unprintable(value), overflow="fold"))
    reading_console().print(table)
    return ExitCode.PASSED


async def _measure(cache: GuardedCache) -> CacheStats | None:
    found = await cache.stats()
    return None if found.rows is None else found


def _lines(found: CacheStats) -> list[tuple[str, str]]:
    lines = [("place", found.place), ("judgements", f"{found.rows}"), ("bytes", f"{found.bytes}")]
    return [*lines, ("damaged files moved aside", f"{found.moved_aside}")] if found.moved_aside else lines

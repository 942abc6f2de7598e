"""`callgrade cache stats`: show where the cache is and what it holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import build_console, build_reading_console
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from service.asking.cache.guard import CacheStats, GuardedCache


@command(10)
def show_stats(
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")] = "table",
) -> int:
    """Show where the cache is, how many judgements it holds and how large it is."""
    # Hits and misses would be those of this process alone; a server exports its own as metrics.
    import json

    from rich.table import Table
    from rich.text import Text

    from service.cli.own_cache import use_cache

    stats = use_cache(_measure)
    if output_format == "json":
        build_console().print(json.dumps(asdict(stats)), soft_wrap=True)
        return ExitCode.PASSED
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for name, value in _list_rows(stats):
        table.add_row(name, Text(escape_unprintable(value), overflow="fold"))
    build_reading_console().print(table)
    return ExitCode.PASSED


async def _measure(cache: GuardedCache) -> CacheStats | None:
    stats = await cache.stats()
    return None if stats.rows is None else stats


def _list_rows(stats: CacheStats) -> list[tuple[str, str]]:
    lines = [("place", stats.place), ("judgements", f"{stats.rows}"), ("bytes", f"{stats.bytes}")]
    return [*lines, ("damaged files moved aside", f"{stats.moved_aside}")] if stats.moved_aside else lines

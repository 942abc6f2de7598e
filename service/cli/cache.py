"""`callgrade cache`: stats, prune, clear."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Literal, TypeVar

from rich.table import Table
from rich.text import Text

from service.cli.console import console, plural, printable, reading_console
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.errors import SettingsError
from service.io.bootstrap import cache_of
from service.io.cache_guard import CacheStats, GuardedCache
from service.io.settings import Settings

T = TypeVar("T")


def show_stats(*, output_format: Literal["table", "json"] = "table") -> ExitCode:
    """What the cache holds. The counts are those of this look alone: a server tells its own in its metrics."""
    found = _on_cache(_measured)
    if output_format == "json":
        console().print(json.dumps(asdict(found)), soft_wrap=True)
        return ExitCode.PASSED
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for name, value in _lines(found):
        table.add_row(name, Text(printable(value), overflow="fold"))
    reading_console().print(table)
    return ExitCode.PASSED


async def _measured(cache: GuardedCache) -> CacheStats | None:
    found = await cache.stats()
    return None if found.rows is None else found


def _lines(found: CacheStats) -> list[tuple[str, str]]:
    lines = [("place", found.place), ("judgements", f"{found.rows}"), ("bytes", f"{found.bytes}")]
    return [*lines, ("damaged files moved aside", f"{found.moved_aside}")] if found.moved_aside else lines


def prune_cache() -> ExitCode:
    """Removes what has expired and what is over the size."""
    return _told_removed(_on_cache(lambda cache: cache.prune()))


def clear_cache() -> ExitCode:
    """Removes all."""
    return _told_removed(_on_cache(lambda cache: cache.clear()))


def _told_removed(count: int) -> ExitCode:
    console().print(f"{plural(count, 'judgement')} removed")
    return ExitCode.PASSED


def _on_cache(work: Callable[[GuardedCache], Awaitable[T | None]]) -> T:
    """What the work gives on the cache of the settings; SettingsError naming the setting where it cannot be used."""
    return asyncio.run(_worked(read_settings(), work))


async def _worked(settings: Settings, work: Callable[[GuardedCache], Awaitable[T | None]]) -> T:
    cache = cache_of(settings)
    try:
        found = await work(cache)
    finally:
        await cache.close()
    if found is None:
        named = "CALLGRADE_CACHE_URL" if settings.cache_url else "CALLGRADE_HOME"
        raise SettingsError.at(named, f"the cache at {cache.place} cannot be used")
    return found

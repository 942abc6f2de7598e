"""`callgrade cache`: what the cache of judgements holds, and how to empty it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from service.cli.command import command_group
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import build_console, pluralize, print_table
from service.errors import SettingsError

if TYPE_CHECKING:
    from service.asking.cache.guard import CacheStats, GuardedCache

T = TypeVar("T")

group = command_group(__name__, 120, "Inspect, prune and clear the cache of judgements.")


@group.command("stats")
def show_stats(
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")] = "table",
) -> int:
    """Show where the cache is, how many judgements it holds and how large it is."""
    # Hits and misses would be those of this process alone; a server exports its own as metrics.
    stats = _use_cache(_measure)
    if output_format == "json":
        build_console().print(json.dumps(asdict(stats)), soft_wrap=True)
        return ExitCode.PASSED
    rows = [("place", stats.place), ("judgements", f"{stats.rows}"), ("bytes", f"{stats.bytes}")]
    rows += [("damaged files moved aside", f"{stats.moved_aside}")] if stats.moved_aside else []
    print_table(("", ""), rows)
    return ExitCode.PASSED


@group.command("prune")
def prune_cache() -> int:
    """Remove expired judgements, and those beyond the size limit. Redis does this by itself."""
    return _print_removed(_use_cache(lambda found: found.prune()))


@group.command("clear")
def clear_cache() -> int:
    """Remove all judgements, for everyone who shares the cache. Judges will be asked, and paid, again."""
    return _print_removed(_use_cache(lambda found: found.clear()))


async def _measure(found: GuardedCache) -> CacheStats | None:
    stats = await found.stats()
    return None if stats.rows is None else stats


def _use_cache(work: Callable[[GuardedCache], Awaitable[T | None]]) -> T:
    """Run `work` on the configured cache and return its result; SettingsError, naming the setting, if the cache is unusable."""
    import asyncio

    from service.wiring import build_cache

    async def run() -> T | None:
        try:
            return await work(cache)
        finally:
            await cache.close()

    settings = read_settings()
    cache = build_cache(settings)
    result = asyncio.run(run())
    if result is None:
        setting = "CALLGRADE_CACHE_URL" if settings.cache_url else "CALLGRADE_HOME"
        raise SettingsError.at(setting, f"the cache at {cache.place} cannot be used")
    return result


def _print_removed(count: int) -> ExitCode:
    build_console().print(f"{pluralize(count, 'judgement')} removed")
    return ExitCode.PASSED

"""`callgrade cache`: what the cache of judgements holds, and how to empty it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from service.cli import options
from service.cli.exits import ExitCode
from service.cli.options import build_command_group, read_settings
from service.cli.screen import pluralize, print_line, print_table
from service.errors import SettingsError

if TYPE_CHECKING:
    from service.asking.cache.guard import CacheStats, GuardedCache

T = TypeVar("T")

commands = build_command_group("cache", "Inspect, prune and clear the cache of judgements.")


@commands.command("stats")
def show_stats(output_format: options.TableOrJson = "table") -> int:
    """Show where the cache is, how many judgements it holds and how large it is."""

    async def measure(found: GuardedCache) -> CacheStats | None:
        stats = await found.stats()
        return None if stats.rows is None else stats

    # Hits and misses would be those of this process alone; a server exports its own as metrics.
    stats = _use_cache(measure)
    rows = [("place", stats.place), ("judgements", f"{stats.rows}"), ("bytes", f"{stats.bytes}")]
    rows += [("damaged files moved aside", f"{stats.moved_aside}")] if stats.moved_aside else []
    print_table(("", ""), rows, form=output_format, value=stats)
    return ExitCode.PASSED


@commands.command("prune")
def prune_cache() -> int:
    """Remove expired judgements, and those beyond the size limit. Redis does this by itself."""
    print_line(f"{pluralize(_use_cache(lambda found: found.prune()), 'judgement')} removed")
    return ExitCode.PASSED


@commands.command("clear")
def clear_cache() -> int:
    """Remove all judgements, for everyone who shares the cache. Judges will be asked, and paid, again."""
    print_line(f"{pluralize(_use_cache(lambda found: found.clear()), 'judgement')} removed")
    return ExitCode.PASSED


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

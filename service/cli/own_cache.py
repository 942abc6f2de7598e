"""The cache of judgements, opened for one piece of work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from service.asking.cache.guard import GuardedCache
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import console, plural
from service.errors import SettingsError
from service.settings import Settings
from service.wiring import build_cache

T = TypeVar("T")


def use_cache(work: Callable[[GuardedCache], Awaitable[T | None]]) -> T:
    """What the work gives on the cache of the settings; SettingsError naming the setting where it cannot be used."""
    return asyncio.run(_work(read_settings(), work))


def tell_removed(count: int) -> ExitCode:
    """Says how many judgements were removed."""
    console().print(f"{plural(count, 'judgement')} removed")
    return ExitCode.PASSED


async def _work(settings: Settings, work: Callable[[GuardedCache], Awaitable[T | None]]) -> T:
    cache = build_cache(settings)
    try:
        found = await work(cache)
    finally:
        await cache.close()
    if found is None:
        named = "CALLGRADE_CACHE_URL" if settings.cache_url else "CALLGRADE_HOME"
        raise SettingsError.at(named, f"the cache at {cache.place} cannot be used")
    return found

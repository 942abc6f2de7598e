"""Open the cache of judgements for one command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from service.asking.cache.guard import GuardedCache
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import build_console, pluralize
from service.errors import SettingsError
from service.settings import Settings
from service.wiring import build_cache

T = TypeVar("T")


def use_cache(work: Callable[[GuardedCache], Awaitable[T | None]]) -> T:
    """Run `work` on the configured cache and return its result; SettingsError, naming the setting, if the cache is unusable."""
    return asyncio.run(_work(read_settings(), work))


def print_removed(count: int) -> ExitCode:
    """Print how many judgements were removed."""
    build_console().print(f"{pluralize(count, 'judgement')} removed")
    return ExitCode.PASSED


async def _work(settings: Settings, work: Callable[[GuardedCache], Awaitable[T | None]]) -> T:
    cache = build_cache(settings)
    try:
        result = await work(cache)
    finally:
        await cache.close()
    if result is None:
        setting = "CALLGRADE_CACHE_URL" if settings.cache_url else "CALLGRADE_HOME"
        raise SettingsError.at(setting, f"the cache at {cache.place} cannot be used")
    return result

"""The fits of a serving process: the files it started with, overridden by what has been installed over HTTP since."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from threading import Lock
from typing import Protocol

from service.core.judging.fits.fit import Fit
from service.fits.files import AgingFits

LOG = logging.getLogger("callgrade.fits")

RELOAD_INTERVAL_S = 1.0
"""Seconds between two checks for newly installed fits; every process picks them up within this time."""


class FitSource(Protocol):
    """Where installed fits are kept."""

    def read_version(self) -> object:
        """Return a value that changes with every change of the installed fits."""
        ...

    def list_fits(self) -> Iterable[Fit]:
        """List the fits in place."""
        ...


class LiveFits(Collection[Fit]):
    """Fits that change while a process runs. Safe to share between threads.

    When the source cannot be reached, the fits stay as they were last read: no verdict waits for it, and none changes because
    of it.
    """

    def __init__(
        self,
        files: Iterable[Fit],
        source: FitSource,
        *,
        max_age_days: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = tuple(files)
        self._source = source
        self._age_days = max_age_days
        self._clock = clock
        self._lock = Lock()
        self._version: object = None
        self._last_reload: float | None = None
        self._fits = AgingFits(self._files, max_age_days=max_age_days)

    def __iter__(self) -> Iterator[Fit]:
        if self._last_reload is None:
            self.reload()
        return iter(self._fits)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, fit: object) -> bool:
        return any(one == fit for one in self)

    async def refresh(self) -> None:
        """Reload the installed fits, unless that was done within the last second. In a thread, because the database blocks."""
        if self._last_reload is None or self._clock() - self._last_reload >= RELOAD_INTERVAL_S:
            await asyncio.to_thread(self.reload)

    def reload(self) -> None:
        """Reload the installed fits now. Blocks: call it in a thread."""
        with self._lock:
            try:
                version = self._source.read_version()
                if version != self._version:
                    self._fits = AgingFits(self._merge(self._source.list_fits()), max_age_days=self._age_days)
                    self._version = version
            except Exception as error:  # noqa: BLE001 (whatever the database says)
                LOG.warning("installed fits could not be read", extra={"fields": {"why": type(error).__name__}})
            self._last_reload = self._clock()

    def _merge(self, installed: Iterable[Fit]) -> list[Fit]:
        """Merge files and installed fits; an installed fit overrides a file of the same judge and criterion."""
        return list(({fit.fingerprint: fit for fit in (*self._files, *installed)}).values())

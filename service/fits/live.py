"""The fits of a process that serves: the files of its start, and over them what was installed over HTTP since."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from threading import Lock
from typing import Protocol

from service.core.judging.fits import Fit
from service.fits.files import AgingFits

LOG = logging.getLogger("callgrade.fits")

LOOK_S = 1.0
"""Seconds between two looks at what is installed: within these every process has it."""


class FitSource(Protocol):
    """Where fits are installed."""

    def read_version(self) -> object:
        """What changes with every change."""
        ...

    def list_fits(self) -> Iterable[Fit]:
        """Those in place."""
        ...


class LiveFits(Collection[Fit]):
    """Fits that change while a process runs. Safe to share between threads.

    A source that cannot be reached leaves what was known: no verdict waits for it, and none changes for it.
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
        self._looked: float | None = None
        self._fits = AgingFits(self._files, max_age_days=max_age_days)

    def __iter__(self) -> Iterator[Fit]:
        if self._looked is None:
            self.look()
        return iter(self._fits)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, fit: object) -> bool:
        return any(one == fit for one in self)

    async def refresh(self) -> None:
        """Looks for what was installed, unless somebody has just done so. In a thread: it waits for the database."""
        if self._looked is None or self._clock() - self._looked >= LOOK_S:
            await asyncio.to_thread(self.look)

    def look(self) -> None:
        """Looks for what was installed now; for a thread."""
        with self._lock:
            try:
                version = self._source.read_version()
                if version != self._version:
                    self._fits = AgingFits(self._merge(self._source.list_fits()), max_age_days=self._age_days)
                    self._version = version
            except Exception as error:  # noqa: BLE001 (whatever the database says)
                LOG.warning("installed fits were not looked at", extra={"fields": {"why": type(error).__name__}})
            self._looked = self._clock()

    def _merge(self, installed: Iterable[Fit]) -> list[Fit]:
        """What is installed goes before a file of the same judge and criterion."""
        return list(({fit.fingerprint: fit for fit in (*self._files, *installed)}).values())

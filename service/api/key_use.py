"""When keys are used, kept now and then: no request waits for it, and none fails for want of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

from service.logs.quiet import thin
from service.store.access.keys import USE_S

LOG = logging.getLogger("callgrade.keys")
thin(LOG.name)

MOST = 10_000
"""Keys of which it is known when they were noted."""


class KeyUseRecorder:
    """Hands the use of a key to `keep`, in a thread of its own, at most once in `USE_S` seconds for each key."""

    def __init__(self, keep: Callable[[str], None], *, now: Callable[[], float] = monotonic) -> None:
        self._keep = keep
        self._now = now
        self._noted: dict[str, float] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="uses")

    def note(self, key_id: str) -> None:
        """Notes that a key was used just now."""
        if self._now() - self._noted.get(key_id, float("-inf")) < USE_S:
            return
        self._noted.pop(key_id, None)
        self._noted[key_id] = self._now()
        if len(self._noted) > MOST:
            del self._noted[next(iter(self._noted))]
        self._thread.submit(self._try, key_id)

    def _try(self, key_id: str) -> None:
        try:
            self._keep(key_id)
        except Exception as error:  # noqa: BLE001 (whatever it is, the key opens what it opens)
            LOG.warning("the use of a key was not kept", extra={"fields": {"why": type(error).__name__}})

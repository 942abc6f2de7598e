"""Record when keys are used, now and then: no request waits for it, and none fails if it fails."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

from service.logs.quiet import limit_rate
from service.store.access.keys import USE_S

LOG = logging.getLogger("callgrade.keys")
limit_rate(LOG.name)

MAX_KEYS = 10_000
"""Most keys that are remembered as recorded."""


class KeyUseRecorder:
    """Passes the use of a key to `record`, in a thread of its own, at most once in `USE_S` seconds per key."""

    def __init__(self, record: Callable[[str], None], *, now: Callable[[], float] = monotonic) -> None:
        self._record = record
        self._now = now
        self._recorded_at: dict[str, float] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="uses")

    def note(self, key_id: str) -> None:
        """Note that a key was used just now."""
        if self._now() - self._recorded_at.get(key_id, float("-inf")) < USE_S:
            return
        self._recorded_at.pop(key_id, None)
        self._recorded_at[key_id] = self._now()
        if len(self._recorded_at) > MAX_KEYS:
            del self._recorded_at[next(iter(self._recorded_at))]
        self._thread.submit(self._try, key_id)

    def _try(self, key_id: str) -> None:
        try:
            self._record(key_id)
        except Exception as error:  # noqa: BLE001 (no failure here may stop a request)
            LOG.warning("the use of a key could not be recorded", extra={"fields": {"why": type(error).__name__}})

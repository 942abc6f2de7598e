"""Token buckets: a number of tokens a minute for each name, all of them available at first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

MAX_NAMES = 10_000
"""Most names that are remembered; the one unused for longest is dropped first."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Buckets:
    """One bucket for each name, full at first. Uses this process's monotonic clock, and counts for this process alone."""

    def __init__(self, per_minute: int, *, now: Callable[[], float] = monotonic) -> None:
        self.per_minute = per_minute
        self._now = now
        self._buckets: dict[str, _Bucket] = {}

    def take(self, name: str) -> float:
        """Take a token and return 0.0; if there is none, return the seconds until there will be one."""
        bucket = self._refill(name)
        if bucket.tokens < 1.0:
            return (1.0 - bucket.tokens) * 60.0 / self.per_minute
        bucket.tokens -= 1.0
        return 0.0

    def count_left(self, name: str) -> int:
        """Count the tokens that can be taken now."""
        return int(self._refill(name).tokens)

    def _refill(self, name: str) -> _Bucket:
        now = self._now()
        bucket = self._buckets.pop(name, None) or _Bucket(float(self.per_minute), now)
        refilled = bucket.tokens + (now - bucket.at) * self.per_minute / 60.0
        bucket.tokens, bucket.at = min(refilled, float(self.per_minute)), now
        self._buckets[name] = bucket  # the most recently used name is last
        if len(self._buckets) > MAX_NAMES:
            del self._buckets[next(iter(self._buckets))]
        return bucket

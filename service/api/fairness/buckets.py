"""Token buckets: so many a minute for each name, as many at once where none were asked for before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

MOST = 10_000
"""Names that are remembered; the one that has asked for nothing the longest goes first."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Buckets:
    """One bucket for each name, full at first. By this process's monotonic clock, and for this process alone."""

    def __init__(self, per_minute: int, *, now: Callable[[], float] = monotonic) -> None:
        self.per_minute = per_minute
        self._now = now
        self._buckets: dict[str, _Bucket] = {}

    def take(self, name: str) -> float:
        """Takes a token: 0.0; or, where there is none, takes nothing and tells in how many seconds there will be one."""
        bucket = self._refill(name)
        if bucket.tokens < 1.0:
            return (1.0 - bucket.tokens) * 60.0 / self.per_minute
        bucket.tokens -= 1.0
        return 0.0

    def count_left(self, name: str) -> int:
        """How many can be taken now."""
        return int(self._refill(name).tokens)

    def _refill(self, name: str) -> _Bucket:
        now = self._now()
        bucket = self._buckets.pop(name, None) or _Bucket(float(self.per_minute), now)
        grown = bucket.tokens + (now - bucket.at) * self.per_minute / 60.0
        bucket.tokens, bucket.at = min(grown, float(self.per_minute)), now
        self._buckets[name] = bucket  # the last one asked for comes last
        if len(self._buckets) > MOST:
            del self._buckets[next(iter(self._buckets))]
        return bucket

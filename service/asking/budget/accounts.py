"""What one process spends of something that all processes share: a tenant's day, or a batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from service.asking.budget.reservations import Spending
from service.core.money import UsageAmount
from service.errors import JudgeError

NOTHING = UsageAmount()


class Cover(NamedTuple):
    """How far the dollars and the calls of an account may go."""

    usd: float
    calls: float


class Account(ABC):
    """Spending that is reserved in the database before it happens, so that a death leaves nothing uncounted."""

    def __init__(self, before: UsageAmount = NOTHING, *, ahead: int, limited: bool = True) -> None:
        """`before`: what was written for it earlier. `ahead`: calls that are reserved together. `limited`: whether at all."""
        self.spending = Spending()
        self.written = self._before = before
        self._ahead = ahead
        if limited:
            self.spending.backing = self
            self.spending.covered_calls = 0.0

    @abstractmethod
    async def hold(self, cover: Cover) -> bool:
        """Write that so much may be spent, and cover it; False if a limit forbids it."""

    @abstractmethod
    def build_refusal(self) -> JudgeError:
        """Build the error for a call that gets no advance."""

    async def advance(self, worst_usd: float) -> bool:
        """Reserve some more calls of at most this cost, or only one if that is too many; False if a limit forbids that too.

        Raises JudgeError if nobody can tell.
        """
        own = self.spending
        for count in (self._ahead, 1):
            usd = max(own.covered_usd, own.committed_usd + count * worst_usd)
            if await self.hold(Cover(usd, max(own.covered_calls, own.calls + count))):
                return True
        return False

    def cover(self, cover: Cover) -> None:
        """Let the spending go so far."""
        if self.spending.backing is not None:
            self.spending.covered_usd, self.spending.covered_calls = cover

    def sum_used(self, cover: Cover | None = None) -> UsageAmount:
        """Sum what was used and is reserved, up to `cover`. Gives back what is reserved if no call is under way."""
        own, before = self.spending, self._before
        if cover is None and own.is_idle:
            self.cover(Cover(own.committed_usd, own.calls))
        usd, calls = cover or (own.covered_usd, own.covered_calls)
        held_usd = max(usd, own.committed_usd) - own.spent_usd - own.uncertain_usd
        return UsageAmount(
            questions=before.questions + own.calls,
            held_questions=0 if own.backing is None else int(max(calls, own.calls)) - own.calls,
            cached=before.cached + own.cached,
            tokens_in=before.tokens_in + own.tokens_in,
            tokens_out=before.tokens_out + own.tokens_out,
            cost_usd=before.cost_usd + own.spent_usd,
            uncertain_usd=before.uncertain_usd + own.uncertain_usd,
            held_usd=0.0 if own.backing is None else held_usd,
            unpriced=before.unpriced + own.unpriced,
        )

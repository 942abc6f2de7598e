"""A cap on what the calls of one request, or of one batch, may cost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from service.core.prompts import Usage
from service.errors import JudgeError
from service.io.faults import CallError


class Spending:
    """US dollars that may be spent, and were. None as the cap: as many as it takes.

    A call reserves the most it can cost before it is made, and settles afterwards. So what is spent passes the cap by no
    more than the calls under way were underestimated. A model whose price is not known is not counted: `unpriced` says how
    many such calls there were.
    """

    def __init__(self, cap_usd: float | None = None, *, within: Spending | None = None) -> None:
        """`within`: of whom this is a part, say a request of a batch. What is spent here counts there, and is bounded there."""
        self.cap_usd = cap_usd
        self._within = within
        self.exhausted = False
        """Whether a call was refused for want of money."""
        self.faults: list[JudgeError] = []
        """What came instead of verdicts."""
        self.spent_usd = 0.0
        """What replies say was spent."""
        self.uncertain_usd = 0.0
        """The most that calls may have cost of which no bill came: those that timed out, broke off or were cancelled."""
        self.unpriced = 0
        """Calls that no price is known for."""
        self._open: set[Bill] = set()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def reserved_usd(self) -> float:
        """The most that the calls under way can cost."""
        return sum(bill.worst_usd for bill in self._open)  # anew, for a running sum would drift

    @property
    def left_usd(self) -> float | None:
        """What is left for further calls; None where there is no cap."""
        if self.cap_usd is None:
            return None
        return max(0.0, self.cap_usd - self.spent_usd - self.uncertain_usd - self.reserved_usd)

    async def room(self, worst_usd: float | None) -> None:
        """Waits for bills to be settled, where what calls under way may cost leaves no room and what they cost might.

        `reserve` may follow at once: nothing has been reserved in between.
        """
        while (whole := self._crowded(worst_usd)) is not None:
            await whole._settled()

    def _crowded(self, worst_usd: float | None) -> Spending | None:
        """The one whose bills under way are what stands in the way, this or what it is a part of."""
        if worst_usd is None:
            return None
        if self._within is not None and (whole := self._within._crowded(worst_usd)) is not None:
            return whole
        left = self.left_usd
        return self if left is not None and worst_usd > left and worst_usd <= left + self.reserved_usd else None

    async def _settled(self) -> None:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def reserve(self, worst_usd: float | None) -> Bill:
        """The bill of one call that costs at most `worst_usd` (None: unknown), open until its block ends.

        Raises JudgeError `budget_exhausted` where that is more than is left.
        """
        whole = self._within.reserve(worst_usd) if self._within else None
        left = self.left_usd
        if worst_usd is None:
            self.unpriced += 1
        elif left is not None and worst_usd > left:
            self.exhausted = True
            reason = f"the call may cost ${worst_usd:.6f}, and ${left:.6f} are left of ${self.cap_usd:.6f}"
            raise JudgeError("budget_exhausted", reason)
        return Bill(self._open, worst_usd or 0.0, self._close, whole)

    def _close(self, bill: Bill, usage: Usage | None) -> None:
        if usage is not None and usage.cost_usd is None:
            self.uncertain_usd += bill.worst_usd
        elif usage is not None:
            self.spent_usd += usage.cost_usd or 0.0
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)


class Bill:
    """What one call costs: `settle` with what its reply says, or leave the block by the error that ended it."""

    def __init__(
        self,
        unsettled: set[Bill],
        worst_usd: float,
        close: Callable[[Bill, Usage | None], None],
        whole: Bill | None = None,
    ) -> None:
        self.worst_usd = worst_usd
        self._unsettled = unsettled
        self._close = close
        self._whole = whole
        self._usage: Usage | None = Usage()  # a bill may come, nobody knows of how much

    def settle(self, usage: Usage) -> None:
        """A reply came and took this."""
        self._usage = usage
        if self._whole:
            self._whole.settle(usage)

    def __enter__(self) -> Bill:
        self._unsettled.add(self)
        if self._whole:
            self._whole.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._whole:
            self._whole.__exit__(kind, error, trace)
        if isinstance(error, JudgeError):
            self._usage = error.usage if isinstance(error, CallError) else None
        self._unsettled.discard(self)
        self._close(self, self._usage)

"""What calls to models may cost, and did, and how many may be made: a request's, a chunk's of a batch, a tenant's of a day."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from math import inf
from types import TracebackType
from typing import Protocol

from service.asking.faults import CallError
from service.core.judging.prompts import Usage
from service.errors import JudgeError


class Backing(Protocol):
    """Where it is written down what may be spent before it is, so that whoever dies leaves no call uncounted."""

    async def advance(self, worst_usd: float) -> bool:
        """Writes down that a call more may be made that costs at most so much, and raises what is covered; else False.

        Raises JudgeError where nobody can tell.
        """
        ...

    def build_refusal(self) -> JudgeError:
        """What a call is told for which there is no advance."""
        ...


class Spending:
    """US dollars that may be spent, and were. None as the cap: as many as it takes.

    A call reserves the most it can cost before it is made, and settles afterwards; a retry is a call of its own. So what is
    spent passes the cap only where a provider bills more than the most. A model whose price is not known is not counted:
    `unpriced` says how many such calls there were.
    """

    def __init__(
        self, cap_usd: float | None = None, *, cap_calls: int | None = None, within: Sequence[Spending] = ()
    ) -> None:
        """`within`: of what this is a part, say of a batch and a day: what is spent here counts there, and is bounded there."""
        self.cap_usd = cap_usd
        self.cap_calls = cap_calls
        self.within = tuple(within)
        self.backing: Backing | None = None
        """Who must write down what is reserved. None: nobody."""
        self.covered_usd = 0.0
        """How far `committed_usd` may go by what is written down; counts where there is a backing."""
        self.covered_calls = inf
        """Likewise of `calls`."""
        self.exhausted = False
        """Whether a call was refused for want of money, or of calls."""
        self.faults: list[JudgeError] = []
        """What came instead of verdicts."""
        self.spent_usd = 0.0
        """What replies say was spent."""
        self.uncertain_usd = 0.0
        """The most that calls may have cost of which no bill came: those that timed out, broke off or were cancelled."""
        self.calls = 0
        """Requests to models, those under way included."""
        self.cached = 0
        """Answers that took none."""
        self.tokens_in = self.tokens_out = 0
        self.unpriced = 0
        """Calls that no price is known for."""
        self._open: set[Reservation] = set()
        self._waiting: list[asyncio.Future[None]] = []
        self._settled = 0  # calls so far
        self._advancing = asyncio.Lock()

    @property
    def reserved_usd(self) -> float:
        """The most that the calls under way can cost."""
        return sum(bill.worst_usd for bill in self._open)  # anew, for a running sum would drift

    @property
    def committed_usd(self) -> float:
        """What was spent, may have been and may be by the calls under way."""
        return self.spent_usd + self.uncertain_usd + self.reserved_usd

    @property
    def left_usd(self) -> float | None:
        """What is left for further calls; None where there is no cap."""
        return None if self.cap_usd is None else max(0.0, self.cap_usd - self.committed_usd)

    @property
    def is_out_of_calls(self) -> bool:
        """Whether as many calls were made as may be."""
        return self.cap_calls is not None and self.calls >= self.cap_calls

    @property
    def is_idle(self) -> bool:
        """Whether no call is under way."""
        return not self._open

    def count_cached(self) -> None:
        """An answer came without a call."""
        for one in self._iterate_payers():
            one.cached += 1

    async def wait_for_room(self, worst_usd: float | None) -> None:
        """Waits until a call may be made or refused: for bills that may leave room, and for what must be written down.

        `reserve` may follow at once: nothing has been reserved in between. Raises JudgeError as `reserve` does.
        """
        worst = worst_usd or 0.0
        while not any(one._is_beyond(worst) for one in self._iterate_payers()):
            crowded = next((one for one in self._iterate_payers() if one._is_crowded(worst)), None)
            uncovered = next((one for one in self._iterate_payers() if one._is_uncovered(worst)), None)
            if crowded is not None:
                await crowded._wait_for_settlement()
            elif uncovered is not None:
                await uncovered._advance_backing(worst)
            else:
                return

    def reserve(self, worst_usd: float | None) -> Reservation:
        """The bill of one call that costs at most `worst_usd` (None: unknown), open until its block ends.

        Raises JudgeError `budget_exhausted` where that is more than is left, or no call is.
        """
        for one in self._iterate_payers():
            one._admit(worst_usd)
        return Reservation(tuple(self._iterate_payers()), worst_usd)

    def _iterate_payers(self) -> Iterator[Spending]:
        for whole in self.within:
            yield from whole._iterate_payers()
        yield self

    def _is_beyond(self, worst: float) -> bool:
        """Whether there is no room whatever the calls under way cost."""
        left = self.left_usd
        return self.is_out_of_calls or (left is not None and worst > left + self.reserved_usd)

    def _is_crowded(self, worst: float) -> bool:
        """Whether there may be room once the calls under way are settled."""
        left = self.left_usd
        return left is not None and worst > left

    def _is_uncovered(self, worst: float) -> bool:
        return self.backing is not None and (
            self.committed_usd + worst > self.covered_usd or self.calls >= self.covered_calls
        )

    async def _advance_backing(self, worst: float) -> None:
        before = self._settled
        async with self._advancing:
            if self.backing is None or not self._is_uncovered(worst) or await self.backing.advance(worst):
                return
        if self._settled != before:  # which may have left room
            return
        if self.is_idle:
            self.exhausted = True
            raise self.backing.build_refusal()
        await self._wait_for_settlement()

    async def _wait_for_settlement(self) -> None:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        await waiting

    def _admit(self, worst_usd: float | None) -> None:
        if self.is_out_of_calls:
            self.exhausted = True
            raise JudgeError("budget_exhausted", "as many questions were asked as may be")
        left = self.left_usd
        if worst_usd is not None and left is not None and worst_usd > left:
            self.exhausted = True
            reason = f"the call may cost ${worst_usd:.6f}, and ${left:.6f} are left of ${self.cap_usd:.6f}"
            raise JudgeError("budget_exhausted", reason)

    def open(self, bill: Reservation) -> None:
        """A call is about to be made."""
        self._open.add(bill)
        self.calls += 1
        self.unpriced += not bill.priced

    def close(self, bill: Reservation, usage: Usage | None) -> None:
        """A call has ended and took this; None: nothing is billed. Without a cost nobody knows of how much a bill may come."""
        self._open.discard(bill)
        self._settled += 1
        if usage is not None:
            self.spent_usd += usage.cost_usd or 0.0
            self.uncertain_usd += bill.worst_usd if usage.cost_usd is None else 0.0
            self.tokens_in += usage.tokens_in or 0
            self.tokens_out += usage.tokens_out or 0
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)


class Reservation:
    """What one call costs: `settle` with what its reply says, or leave the block by the error that ended it."""

    def __init__(self, payers: tuple[Spending, ...], worst_usd: float | None) -> None:
        self.priced = worst_usd is not None
        self.worst_usd = worst_usd or 0.0
        self._payers = payers
        self._usage: Usage | None = Usage()  # a bill may come, nobody knows of how much

    def settle(self, usage: Usage) -> None:
        """A reply came and took this."""
        self._usage = usage

    def __enter__(self) -> Reservation:
        for payer in self._payers:
            payer.open(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, JudgeError):
            self._usage = error.usage if isinstance(error, CallError) else None
        for payer in self._payers:
            payer.close(self, self._usage)

"""The cost and the number of calls to models: limits and totals of a request, of a chunk, and of a tenant's day."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from typing_extensions import override

from service.asking.faults import CallError
from service.core.judging.judges import Ask
from service.core.judging.prompts import Usage
from service.core.money import Cost, Spent, UsageAmount, format_usd
from service.core.work_limits import MAX_QUESTIONS
from service.errors import InputError, JudgeError


class Spending:
    """US dollars that may be spent, and were spent. Without a cap there is no limit.

    A call reserves the most it can cost before it is made, and settles afterwards; a retry is a call of its own. So spending
    exceeds the cap only if a provider bills more than that. Calls to a model of unknown price are only counted.
    """

    def __init__(self, cap_usd: float | None = None, *, within: Sequence[Spending] = ()) -> None:
        """`within`: the wholes that this is part of, such as a batch and a day; they count and limit this spending too."""
        self.cap_usd = cap_usd
        self.within = tuple(within)
        self.faults: list[JudgeError] = []
        """The faults that came instead of verdicts."""
        self.spent_usd = 0.0
        """According to the replies."""
        self.uncertain_usd = 0.0
        """The most that calls without a bill may have cost: those that timed out, broke off or were cancelled."""
        self.calls = 0
        """Requests to models, including those under way."""
        self.cached = 0
        """Answers that needed no request."""
        self.tokens_in = self.tokens_out = 0
        self.unpriced = 0
        """Calls without a known price for which a bill may come."""
        self._open: set[Reservation] = set()
        self._settlement = asyncio.Event()  # of the next call that ends

    @property
    def reserved_usd(self) -> float:
        """The most that the calls under way can cost."""
        return sum(one.worst_usd for one in self._open)  # summed each time, as a running total would drift

    @property
    def committed_usd(self) -> float:
        """What was spent, what may have been, and what the calls under way may cost."""
        return self.spent_usd + self.uncertain_usd + self.reserved_usd

    @property
    def left_usd(self) -> float | None:
        """What is left for further calls; None without a cap."""
        return None if self.cap_usd is None else max(0.0, self.cap_usd - self.committed_usd)

    @property
    def is_idle(self) -> bool:
        """Whether no call is under way."""
        return not self._open

    def sum_spent(self) -> Spent:
        """Sum what calls took, whatever became of their replies."""
        return Spent(Cost(self.spent_usd, self.unpriced), self.tokens_in, self.tokens_out)

    def count_cached(self) -> None:
        """Count an answer that needed no call."""
        for one in self._iterate_payers():
            one.cached += 1

    def count_paid(self, usage: Usage) -> None:
        """Count a call that was made and billed in another way; no limit can undo it."""
        with self.reserve(None) as paid:
            paid.settle(usage)

    async def wait_for_room(self, worst_usd: float | None) -> None:
        """Wait until a call may be made or refused: for reservations that may settle for less, and for advances to be recorded.

        `reserve` may follow at once: nothing is reserved in between. Raises JudgeError as `reserve` does.
        """
        worst = worst_usd or 0.0
        while not any(one._lacks_room(worst, settled=one.reserved_usd) for one in self._iterate_payers()):
            crowded = next((one for one in self._iterate_payers() if one._lacks_room(worst)), None)
            uncovered = next((one for one in self._iterate_payers() if one.is_uncovered(worst)), None)
            if crowded is not None:
                await crowded._settlement.wait()
            elif uncovered is not None:
                await uncovered.extend_cover(worst)
            else:
                return

    @contextmanager
    def reserve(self, worst_usd: float | None) -> Generator[Reservation]:
        """Reserve one call that costs at most `worst_usd` (None: unknown), until the block ends.

        The block settles it with what the reply reports, or raises the error that ended the call. Raises JudgeError
        `budget_exhausted` if it may cost more than is left.
        """
        payers, sent = tuple(self._iterate_payers()), True
        for left, cap in [(one.left_usd, one.cap_usd) for one in payers]:
            if worst_usd is not None and left is not None and worst_usd > left:
                usd = f"{format_usd(worst_usd)}, and {format_usd(left)} are left of {format_usd(cap or 0.0)}"
                reason = f"the call may cost {usd} (budget_usd or CALLGRADE_REQUEST_MAX_USD)"
                raise JudgeError("budget_exhausted", reason)
        call = Reservation(worst_usd)
        for payer in payers:
            payer._open.add(call)
            payer.calls += 1
        try:
            yield call
        except JudgeError as error:
            call.usage, sent = (error.usage, error.sent) if isinstance(error, CallError) else (None, True)
            raise
        finally:
            for payer in payers:
                payer._end_call(call, sent=sent)

    def _iterate_payers(self) -> Iterator[Spending]:
        for payer in self.within:
            yield from payer._iterate_payers()
        yield self

    def _lacks_room(self, worst: float, *, settled: float = 0.0) -> bool:
        """Whether there is no room, if so much of what is reserved is settled for nothing."""
        left = self.left_usd
        return left is not None and worst > left + settled

    def is_uncovered(self, worst: float) -> bool:  # noqa: ARG002 (for accounts)
        """Whether a call of this cost must be recorded elsewhere before it is made."""
        return False

    async def extend_cover(self, worst: float) -> None:
        """Record that such a call may be made. Raises JudgeError if it may not."""

    def _end_call(self, reservation: Reservation, *, sent: bool) -> None:
        """End a call, and count its usage. `sent`: whether anything may have reached the model; if not, it was no call."""
        usage = reservation.usage
        self._open.discard(reservation)
        self.calls -= not sent
        if usage is not None:
            self.spent_usd += usage.cost_usd or 0.0
            self.uncertain_usd += reservation.worst_usd if usage.cost_usd is None else 0.0
            self.unpriced += usage.cost_usd is None and not reservation.priced
            self.tokens_in += usage.tokens_in or 0
            self.tokens_out += usage.tokens_out or 0
        settlement, self._settlement = self._settlement, asyncio.Event()
        settlement.set()


class Reservation:
    """The reserved cost of one call: a bill of unknown size, until it is settled."""

    def __init__(self, worst_usd: float | None) -> None:
        self.priced = worst_usd is not None
        self.worst_usd = worst_usd or 0.0
        self.usage: Usage | None = Usage()
        """What is billed; None: nothing. Without a cost, a bill of unknown size."""

    def settle(self, usage: Usage) -> None:
        """Settle with the usage of the reply."""
        self.usage = usage


@dataclass(frozen=True, slots=True)
class AskLimits:
    """The limits of one request, or of one item of a batch."""

    max_questions: int = MAX_QUESTIONS
    """Requests to models: every vote of every model on every question; repairs and retries do not count."""
    max_usd: float | None = None
    """None: unlimited."""

    def admit_questions(self, asks: Iterable[Ask]) -> None:
        """Raise InputError if there are more questions than allowed."""
        votes = sum([ask.judge.samples * max(1, len(ask.judge.models)) for ask in asks])
        if votes > self.max_questions:
            message = f"{votes} requests to judges; at most {self.max_questions} for one item (CALLGRADE_REQUEST_MAX_QUESTIONS)"
            raise InputError.at("/rubric/criteria", message)

    def admit_budget(self, budget_usd: float | None) -> None:
        """Raise InputError for a budget above what may be spent."""
        if budget_usd is not None and self.max_usd is not None and budget_usd > self.max_usd:
            message = f"expected at most {self.max_usd:g} (CALLGRADE_REQUEST_MAX_USD), not {budget_usd:g}"
            raise InputError.at("/budget_usd", message)


NOTHING = UsageAmount()


class Cover(NamedTuple):
    """How far the dollars and the calls of an account may go."""

    usd: float
    calls: float


class Account(Spending):
    """What one process spends of something that all processes share: a tenant's day, or a batch.

    It is reserved where all see it before it happens, so that a death leaves nothing uncounted.
    """

    def __init__(self, before: UsageAmount = NOTHING, *, ahead: int, limited: bool = True) -> None:
        """`before`: what was written for it earlier. `ahead`: calls that are reserved together. `limited`: whether at all."""
        super().__init__()
        self.written = self._before = before
        self._ahead = ahead
        self._cover = Cover(0.0, 0.0) if limited else None
        self._advancing = asyncio.Lock()

    @abstractmethod
    async def hold(self, cover: Cover) -> bool:
        """Write that so much may be spent, and cover it; False if a limit forbids it."""

    @abstractmethod
    def build_refusal(self) -> JudgeError:
        """Build the error for a call that gets no advance."""

    @override
    def is_uncovered(self, worst: float) -> bool:
        return self._cover is not None and (
            self.committed_usd + worst > self._cover.usd or self.calls >= self._cover.calls
        )

    @override
    async def extend_cover(self, worst: float) -> None:
        before = self._settlement
        async with self._advancing:
            if not self.is_uncovered(worst) or await self.advance(worst):
                return
        if self._settlement is not before:  # settled calls may have left room
            return
        if self.is_idle:
            raise self.build_refusal()
        await before.wait()

    async def advance(self, worst: float) -> bool:
        """Reserve some more calls of at most this cost, or only one if that is too many; False if a limit forbids that too.

        Raises JudgeError if nobody can tell.
        """
        covered = self._cover or Cover(0.0, 0.0)
        for count in (self._ahead, 1):
            usd = max(covered.usd, self.committed_usd + count * worst)
            if await self.hold(Cover(usd, max(covered.calls, self.calls + count))):
                return True
        return False

    def cover(self, cover: Cover | None) -> None:
        """Let the spending go so far."""
        if self._cover is not None:
            self._cover = cover or self._cover

    def sum_used(self, cover: Cover | None = None) -> UsageAmount:
        """Sum what was used and is reserved, up to `cover`. Gives back what is reserved if no call is under way."""
        if cover is None and self.is_idle:
            self.cover(Cover(self.committed_usd, self.calls))
        before, held = self._before, self._cover and (cover or self._cover)
        spent = self.spent_usd + self.uncertain_usd
        return UsageAmount(
            questions=before.questions + self.calls,
            held_questions=0 if held is None else int(max(held.calls, self.calls)) - self.calls,
            cached=before.cached + self.cached,
            tokens_in=before.tokens_in + self.tokens_in,
            tokens_out=before.tokens_out + self.tokens_out,
            cost_usd=before.cost_usd + self.spent_usd,
            uncertain_usd=before.uncertain_usd + self.uncertain_usd,
            held_usd=0.0 if held is None else max(held.usd, self.committed_usd) - spent,
            unpriced=before.unpriced + self.unpriced,
        )

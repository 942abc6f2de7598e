"""A budget holds whatever comes in whatever order: reservations, replies, faults, retries, commits and crashes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from service.asking.budget.reservations import Reservation, Spending
from service.asking.faults import CallError
from service.core.judging.prompts import Usage
from service.errors import JudgeError
from service.jobs.recorder import Account
from service.store.access.usage import Caps
from service.store.jobs.leases import ChunkSpending

UNIT = 1 / 64
"""Of a dollar: sums of it are exact, so a budget that is passed by anything at all is passed."""

Ending = Literal["reply", "refusal", "fault", "timeout", "cancel"]


class Call(NamedTuple):
    """One that may cost `worst` units and does cost `billed`; then it may be made again."""

    worst: int
    billed: int
    again: bool


class End(NamedTuple):
    """One of the calls under way ends."""

    which: int
    how: Ending


Step = Call | End | Literal["compose", "commit", "record", "crash"]

CALLS = st.integers(1, 16).flatmap(lambda worst: st.builds(Call, st.just(worst), st.integers(0, worst), st.booleans()))
ENDS = st.builds(End, st.integers(0, 9), st.sampled_from(["reply", "refusal", "fault", "timeout", "cancel"]))
STEPS = st.lists(
    st.one_of(CALLS, CALLS, ENDS, ENDS, st.sampled_from(["compose", "commit", "record", "crash"])), max_size=60
)


@dataclass
class Books:
    """What the database has of a chunk, what the provider has billed, in dollars, and how often it was asked."""

    written: ChunkSpending = field(default_factory=ChunkSpending)
    billed: float = 0.0
    asked: int = 0

    @property
    def written_usd(self) -> float:
        return self.written.usd + self.written.uncertain_usd


@dataclass(eq=False)
class Worker:
    """One opening of the chunk, by a process that may die at any moment."""

    books: Books
    caps: Caps
    calls: list[tuple[Call, asyncio.Future[Ending]]] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    queued: list[asyncio.Future[bool]] = field(default_factory=list)
    composed: tuple[ChunkSpending, list[asyncio.Future[bool]]] | None = None

    def __post_init__(self) -> None:
        usd, questions = self.caps.usd, self.caps.questions
        own = Spending(
            None if usd is None else usd - self.books.written_usd,
            cap_calls=None if questions is None else questions - self.books.written.questions,
        )
        self.account = Account(self.books.written, own)
        self.account.write_ahead(self.write)

    async def write(self) -> bool:
        told = asyncio.get_running_loop().create_future()
        self.queued.append(told)
        return await told

    async def record(self) -> None:
        """As where an outcome is recorded."""
        await self.write()

    def compose(self) -> None:
        if self.composed is None and self.queued:
            self.composed, self.queued = (self.account.compute_totals(), self.queued), []

    def commit(self) -> None:
        if self.composed is not None:
            (self.books.written, told), self.composed = self.composed, None
            for one in told:
                if not one.done():
                    one.set_result(True)

    async def call(self, call: Call) -> None:
        """As `ModelCaller` does: room, reservation, request, bill; and once more where it failed."""
        item = Spending(within=[self.account.spending])
        for _ in range(1 + call.again):
            try:
                await item.wait_for_room(call.worst * UNIT)
                with item.reserve(call.worst * UNIT) as bill:
                    await self.made(call, bill)
                    return
            except JudgeError as error:
                if error.cause in ("budget_exhausted", "refused"):
                    return

    async def made(self, call: Call, bill: Reservation) -> None:
        ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.books.asked += 1
        self.calls.append((call, ending))
        try:
            how = await ending
        finally:
            self.calls.remove((call, ending))
        if how == "fault":
            raise CallError("provider_error", "no", status=503, retryable=True)
        self.books.billed += call.billed * UNIT
        if how == "cancel":
            raise asyncio.CancelledError
        if how == "timeout":
            raise CallError("timeout", "no", usage=Usage(), retryable=True)
        usage = Usage(1, 1, call.billed * UNIT)
        if how == "refusal":
            raise CallError("refused", "no", usage=usage)
        bill.settle(usage)

    def under_way(self) -> float:
        return sum(call.billed * UNIT for call, _ in self.calls)

    def end(self, end: End) -> None:
        if self.calls:
            _, ending = self.calls[end.which % len(self.calls)]
            if not ending.done():
                ending.set_result(end.how)

    async def die(self) -> None:
        """What is under way is billed; what was not committed is lost."""
        self.books.billed += self.under_way()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def settled() -> None:
    """Until every task waits for something that only a step gives."""
    for _ in range(12):
        await asyncio.sleep(0)


async def take(worker: Worker, step: Step) -> Worker:
    """One step; the worker that is there after it."""
    books = worker.books
    if isinstance(step, Call):
        worker.tasks.append(asyncio.create_task(worker.call(step)))
    elif isinstance(step, End):
        worker.end(step)
    elif step == "record":
        worker.tasks.append(asyncio.create_task(worker.record()))
    elif step == "compose":
        worker.compose()
    elif step == "commit":
        worker.commit()
    else:
        await worker.die()
        return Worker(books, worker.caps)
    await settled()
    return worker


async def play(caps: Caps, steps: list[Step]) -> None:
    books = Books()
    worker = Worker(books, caps)
    usd, questions = (inf if cap is None else cap for cap in (caps.usd, caps.questions))
    for step in steps:
        worker = await take(worker, step)
        assert books.billed + worker.under_way() <= usd
        assert books.written_usd <= usd
        assert books.asked <= questions
        assert books.written.questions <= questions
    while worker.calls or worker.queued or worker.composed:
        worker.compose()
        worker.commit()
        worker.end(End(0, "reply"))
        await settled()
    await take(worker, "record")
    worker.compose()
    worker.commit()
    spent, uncertain, asked = books.written
    if caps.usd is not None:
        assert spent <= books.billed <= spent + uncertain <= usd
    if caps.questions is not None:
        assert books.asked <= asked <= questions
    if "crash" not in steps:
        assert books.asked == asked
    if "crash" not in steps and not any(isinstance(one, End) and one.how in ("timeout", "cancel") for one in steps):
        assert (spent, uncertain) == (books.billed, 0.0)
    for task in worker.tasks:
        task.cancel()
    await asyncio.gather(*worker.tasks, return_exceptions=True)


@given(st.integers(0, 64), STEPS)
def test_a_batchs_budget_holds_to_the_cent_whatever_dies_when(units: int, steps: list[Step]) -> None:
    asyncio.run(play(Caps(usd=units * UNIT), steps))


@given(st.none() | st.integers(0, 64), st.integers(0, 40), STEPS)
def test_a_batchs_questions_are_no_more_than_it_may_ask(units: int | None, questions: int, steps: list[Step]) -> None:
    asyncio.run(play(Caps(questions, None if units is None else units * UNIT), steps))

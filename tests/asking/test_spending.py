"""A limit of a batch holds whatever comes in whatever order: reservations, replies, faults, retries, commits and crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal, NamedTuple, TypeVar

from hypothesis import given
from hypothesis import strategies as st

from service.asking.budget.reservations import Reservation, Spending
from service.asking.faults import CallError
from service.core.judging.prompts import Usage
from service.core.money import UsageAmount
from service.errors import JudgeError
from service.jobs.recorder import Recorder
from service.store.access.usage import Caps
from service.store.database import Database
from service.store.jobs.chunks import Chunks
from service.store.jobs.leases import ClaimedChunk, Lease, OutcomeRows

T = TypeVar("T")

UNIT = 1 / 64
"""Of a dollar: sums of it are exact, so a budget that is passed by anything at all is passed."""

WORKERS = 2
LEASE = Lease("batch", 0, 1)

Ending = Literal["reply", "refusal", "fault", "timeout", "cancel"]


class Call(NamedTuple):
    """One of a worker that may cost `worst` units and does cost `billed`; then it may be made again."""

    worker: int
    worst: int
    billed: int
    again: bool


class End(NamedTuple):
    """One of a worker's calls under way ends."""

    worker: int
    which: int
    how: Ending


class Act(NamedTuple):
    """What else a worker does: its next transaction is committed, it records an outcome, or it dies."""

    worker: int
    what: Literal["commit", "record", "crash"]


Step = Call | End | Act

NUMBERS = st.integers(0, WORKERS - 1)
CALLS = st.integers(1, 16).flatmap(
    lambda worst: st.builds(Call, NUMBERS, st.just(worst), st.integers(0, worst), st.booleans())
)
ENDS = st.builds(End, NUMBERS, st.integers(0, 9), st.sampled_from(["reply", "refusal", "fault", "timeout", "cancel"]))
ACTS = st.builds(Act, NUMBERS, st.sampled_from(["commit", "commit", "commit", "record", "crash"]))
STEPS = st.lists(st.one_of(CALLS, CALLS, ENDS, ENDS, ACTS, ACTS), max_size=60)


@dataclass
class Books:
    """What the database has of a batch by worker, what the provider has billed, in dollars, and how often it was asked."""

    caps: Caps
    rows: dict[int, UsageAmount] = field(default_factory=dict)
    billed: float = 0.0
    asked: int = 0

    def total(self, rows: Iterable[UsageAmount]) -> tuple[float, int]:
        found = list(rows)
        usd = sum(one.cost_usd + one.uncertain_usd + one.held_usd for one in found)
        return usd, sum(one.questions + one.held_questions for one in found)

    def reclaim(self, owner: int) -> None:
        """As `Workers.reclaim`."""
        one = self.rows.get(owner, UsageAmount())
        spent = {"questions": one.questions + one.held_questions, "uncertain_usd": one.uncertain_usd + one.held_usd}
        self.rows[owner] = replace(one, **spent, held_questions=0, held_usd=0.0)


class Desk(Chunks):
    """The books as one worker sees them, in place of a database."""

    def __init__(self, books: Books, owner: int) -> None:
        super().__init__(Database.__new__(Database), f"{owner}")
        self._books, self._number = books, owner

    def read_used(self, batch: str) -> UsageAmount:  # noqa: ARG002
        return self._books.rows.get(self._number, UsageAmount())

    def hold(self, batch: str, used: UsageAmount) -> Literal["budget_usd", "max_questions"] | None:  # noqa: ARG002
        rows, caps = {**self._books.rows, self._number: used}, self._books.caps
        usd, questions = self._books.total(rows.values())
        if caps.questions is not None and questions > caps.questions:
            return "max_questions"
        if caps.usd is not None and usd > caps.usd:
            return "budget_usd"
        self._books.rows = rows
        return None

    def write_used(self, batch: str, used: UsageAmount) -> None:  # noqa: ARG002
        self._books.rows[self._number] = used

    def record(self, groups: Iterable[OutcomeRows]) -> list[bool]:
        found = list(groups)
        for group in found:
            if group.used is not None:
                self.write_used(group.lease.batch, group.used)
        return [True for _ in found]


class Stepwise(Recorder):
    """A recorder whose transactions wait to be committed."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk, in_flight=1, interval_s=0.0)
        self.waiting: list[asyncio.Future[None]] = []

    async def _call(self, work: Callable[[], T]) -> T:
        gate = asyncio.get_running_loop().create_future()
        self.waiting.append(gate)
        await gate
        return work()

    def commit(self) -> None:
        if self.waiting:
            gate = self.waiting.pop(0)
            if not gate.done():
                gate.set_result(None)


class Worker:
    """A process that may die at any moment."""

    def __init__(self, books: Books, owner: int) -> None:
        self.books, self.owner = books, owner
        self.recorder = Stepwise(Desk(books, owner))
        self.calls: list[tuple[Call, asyncio.Future[Ending]]] = []
        self.tasks: list[asyncio.Task[object]] = []

    async def start(self) -> Worker:
        opening = asyncio.create_task(self.recorder.open_account(ClaimedChunk(LEASE, "", (), 1, 0)))
        await settled()
        self.recorder.commit()
        self.account = await opening
        return self

    def do(self, work: object) -> None:
        self.tasks.append(asyncio.ensure_future(work))  # type: ignore[arg-type]

    async def call(self, call: Call) -> None:
        """As `ModelCaller` does: room, reservation, request, bill; and once more where it failed."""
        item = Spending(within=[self.account])
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
        tasks = [*self.tasks, *([self.recorder._task] if self.recorder._task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.recorder.close()
        self.books.reclaim(self.owner)


async def settled() -> None:
    """Until every task waits for something that only a step gives."""
    for _ in range(25):
        await asyncio.sleep(0)


async def take(workers: list[Worker], step: Step) -> None:
    """One step."""
    worker = workers[step.worker]
    if isinstance(step, Call):
        worker.do(worker.call(step))
    elif isinstance(step, End):
        worker.end(step)
    elif step.what == "record":
        worker.do(worker.recorder.put(LEASE, worker.account, ()))
    elif step.what == "commit":
        worker.recorder.commit()
    else:
        await worker.die()
        workers[step.worker] = await Worker(worker.books, worker.owner + WORKERS).start()
    await settled()


async def play(caps: Caps, steps: list[Step]) -> None:
    books = Books(caps)
    workers = [await Worker(books, n).start() for n in range(WORKERS)]
    usd, questions = (inf if cap is None else cap for cap in (caps.usd, caps.questions))
    for step in steps:
        await take(workers, step)
        written_usd, written = books.total(books.rows.values())
        assert books.billed + sum(worker.under_way() for worker in workers) <= usd
        assert written_usd <= usd
        assert books.asked <= questions
        assert written <= questions
    while any(worker.calls or worker.recorder.waiting for worker in workers):
        for n, worker in enumerate(workers):
            worker.recorder.commit()
            worker.end(End(n, 0, "reply"))
        await settled()
    for n, worker in enumerate(workers):
        await take(workers, Act(n, "record"))
        worker.recorder.commit()
        await settled()
    check_books(books, steps)
    for worker in workers:
        await worker.die()


def check_books(books: Books, steps: list[Step]) -> None:
    """What is written of a batch when nothing is under way any more."""
    rows = books.rows.values()
    spent, uncertain = sum(one.cost_usd for one in rows), sum(one.uncertain_usd for one in rows)
    asked = sum(one.questions for one in rows)
    assert not any(one.held_questions or one.held_usd for one in rows)
    crashed = any(isinstance(one, Act) and one.what == "crash" for one in steps)
    if books.caps.usd is not None:
        assert spent <= books.billed <= spent + uncertain <= books.caps.usd
    if books.caps.questions is not None:
        assert books.asked <= asked <= books.caps.questions
    if not crashed:
        assert books.asked == asked
    if not crashed and not any(isinstance(one, End) and one.how in ("timeout", "cancel") for one in steps):
        assert (spent, uncertain) == (books.billed, 0.0)


@given(st.integers(0, 64), STEPS)
def test_a_batchs_budget_holds_to_the_cent_whatever_dies_when(units: int, steps: list[Step]) -> None:
    asyncio.run(play(Caps(usd=units * UNIT), steps))


@given(st.none() | st.integers(0, 64), st.integers(0, 40), STEPS)
def test_a_batchs_questions_are_no_more_than_it_may_ask(units: int | None, questions: int, steps: list[Step]) -> None:
    asyncio.run(play(Caps(questions, None if units is None else units * UNIT), steps))

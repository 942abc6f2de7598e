"""A tenant's day holds over processes, to the cent; what was used is what is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.asking.budget.days import NO_CAPS, RETRY_S, Days
from service.asking.budget.reservations import Spending
from service.asking.faults import CallError
from service.core.judging.prompts import Usage
from service.core.money import UsageAmount
from service.errors import DaySpentError, JudgeError
from service.store.access.usage import Caps, UsageStore, format_day
from service.store.database import Database, open_database
from service.store.times import DAY_S
from tests.bulk import examples
from tests.faults.disk import fill, small
from tests.stores import open_new_store

UNIT = 1 / 64
"""Of a dollar: sums of it are exact."""

TODAY = 20_000


def noon() -> float:
    return (TODAY + 0.5) * DAY_S


class Call(NamedTuple):
    """A call of one of the processes that may cost `worst` units and does cost `billed`, and how it ends."""

    process: int
    worst: int
    billed: int
    how: Literal["reply", "fault", "timeout", "leave"]


class Turn(NamedTuple):
    """What a process does between calls."""

    process: int
    what: Literal["end one", "flush", "crash"]


CALLS = st.integers(1, 16).flatmap(
    lambda worst: st.builds(
        Call,
        st.integers(0, 1),
        st.just(worst),
        st.integers(0, worst),
        st.sampled_from(["reply", "reply", "fault", "timeout", "leave"]),
    )
)
TURNS = st.builds(Turn, st.integers(0, 1), st.sampled_from(["end one", "end one", "flush", "crash"]))


class Process:
    """Calls under way over one store, which may be lost at any moment."""

    def __init__(self, store: UsageStore, caps: Caps) -> None:
        self.days = Days(store, caps, now=noon)
        self.under_way: list[tuple[Call, asyncio.Event]] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.billed = 0.0
        self.made = 0

    async def call(self, call: Call) -> None:
        item = Spending(within=[self.days.get_spending("t")])
        try:
            await item.wait_for_room(call.worst * UNIT)
            with item.reserve(call.worst * UNIT) as bill:
                self.made += 1
                ended = asyncio.Event()
                self.under_way.append((call, ended))
                try:
                    await ended.wait()
                finally:
                    self.under_way.remove((call, ended))
                    self.billed += 0.0 if call.how == "fault" else call.billed * UNIT
                if call.how == "fault":
                    raise CallError("provider_error", "no", status=503)
                if call.how == "timeout":
                    raise CallError("timeout", "no", usage=Usage())
                if call.how == "leave":
                    raise asyncio.CancelledError
                bill.settle(Usage(3, 2, call.billed * UNIT))
        except JudgeError:
            pass

    def worst(self) -> float:
        """The provider's sum, were all calls under way to be billed."""
        return self.billed + sum(call.billed * UNIT for call, _ in self.under_way)

    async def die(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if (flushing := self.days._flushing) is not None:
            flushing.cancel()


async def settled(process: Process) -> None:
    """Until each call of a process is under way, or waits for one that is, or has ended."""
    for _ in range(200):
        await asyncio.sleep(0)
        if not any(task for day in process.days._days.values() for task in day._tasks):
            break
        await asyncio.sleep(0.001)
    for _ in range(10):
        await asyncio.sleep(0)


async def play(store: UsageStore, caps: Caps, steps: list[Call | Turn]) -> None:
    processes, gone = [Process(store, caps), Process(store, caps)], list[Process]()
    for step in steps:
        one = processes[step.process]
        if isinstance(step, Call):
            one.tasks.append(asyncio.create_task(one.call(step)))
        elif step.what == "flush":
            await one.days.flush()
        elif step.what == "crash":
            await one.die()
            gone.append(one)
            processes[step.process] = Process(store, caps)
        elif one.under_way:
            one.under_way[0][1].set()
        await settled(one)
        assert sum(each.worst() for each in processes + gone) <= (caps.usd or 0.0)
        assert sum(each.made for each in processes + gone) <= (caps.questions or 0)
    for one in processes:
        while one.under_way:
            one.under_way[0][1].set()
            await settled(one)
        await one.die()
        await one.days.close()
    found = store.list_days(TODAY)
    spent, uncertain = (found[0].cost_usd, found[0].uncertain_usd) if found else (0.0, 0.0)
    billed = sum(each.billed for each in processes + gone)
    assert spent <= billed <= spent + uncertain <= (caps.usd or 0.0)
    if not gone and not any(isinstance(one, Call) and one.how in ("timeout", "leave") for one in steps):
        assert (spent, uncertain) == (billed, 0.0)
        assert sum(one.questions for one in found) == sum(each.made for each in processes)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = open_new_store(tmp_path_factory.mktemp("days"))
    yield database
    database.close()


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.integers(1, 64), st.integers(1, 12), st.lists(st.one_of(CALLS, CALLS, TURNS), max_size=25))
def test_a_tenants_day_holds_over_processes_that_die(
    kept: Database, units: int, questions: int, steps: list[Call | Turn]
) -> None:
    with kept.begin() as connection:
        connection.exec_driver_sql("DELETE FROM callgrade_usage")
    asyncio.run(play(UsageStore(kept), Caps(questions, units * UNIT), steps))


async def spend(days: Days, tenant: str, worst: float, usage: Usage) -> None:
    item = Spending(within=[days.get_spending(tenant)])
    await item.wait_for_room(worst)
    with item.reserve(worst) as bill:
        bill.settle(usage)


def test_what_was_used_is_told_by_day_and_tenant(database: Database) -> None:
    store, clock = UsageStore(database), [noon()]

    async def main() -> None:
        days = Days(store, now=lambda: clock[0])
        await spend(days, "a", 0.5, Usage(10, 5, 0.25))
        days.get_spending("a").count_cached()
        await spend(days, "b", 0.5, Usage(None, None, None))
        clock[0] += DAY_S
        await spend(days, "a", 0.5, Usage(1, 1, 0.125))
        await days.close()

    asyncio.run(main())
    told = [
        (one.tenant, one.day, one.questions, one.cached, one.cost_usd, one.uncertain_usd)
        for one in store.list_days(TODAY + 1)
    ]
    assert told == [
        ("a", format_day(TODAY + 1), 1, 0, 0.125, 0.0),
        ("a", format_day(TODAY), 1, 1, 0.25, 0.0),
        ("b", format_day(TODAY), 1, 0, 0.0, 0.5),
    ]
    assert [one.tokens_in for one in store.list_days(TODAY + 1, tenant="a")] == [1, 10]
    store.forget_old(TODAY + 32)
    assert [one.day for one in store.list_days(TODAY)] == [format_day(TODAY + 1)]


@pytest.mark.parametrize("caps", [Caps(questions=5), Caps(usd=0.5)])
def test_processes_at_the_same_moment_do_not_pass_a_cap(database: Database, caps: Caps) -> None:
    store = UsageStore(database)

    async def main() -> int:
        many = [Days(store, caps, now=noon) for _ in range(4)]
        calls = [spend(days, "t", 0.1, Usage(1, 1, 0.1)) for days in many for _ in range(5)]
        ended = await asyncio.gather(*calls, return_exceptions=True)
        for days in many:
            await days.close()
        assert {type(one) for one in ended} <= {type(None), DaySpentError}
        return ended.count(None)

    made = asyncio.run(main())
    assert 1 <= made <= 5
    (day,) = store.list_days(TODAY)
    assert (day.questions, day.uncertain_usd) == (made, pytest.approx(0.0, abs=1e-9))


def test_a_new_day_begins_anew(database: Database) -> None:
    clock = [noon()]

    async def main() -> None:
        days = Days(UsageStore(database), Caps(questions=1), now=lambda: clock[0])
        await spend(days, "t", 0.1, Usage(1, 1, 0.1))
        with pytest.raises(DaySpentError, match="1 questions a day") as spent:
            await spend(days, "t", 0.1, Usage(1, 1, 0.1))
        assert spent.value.retry_after == DAY_S / 2
        clock[0] += DAY_S
        await spend(days, "t", 0.1, Usage(1, 1, 0.1))
        await days.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("caps", "told"),
    [
        (Caps(usd=0.0005), r"spend \$0\.0005 on judges a day \(UTC\), by CALLGRADE_TENANT_DAY_MAX_USD"),
        (Caps(1_000, 0.0005), r"spend \$0\.0005 on judges a day \(UTC\), by CALLGRADE_TENANT_DAY_MAX_USD"),
        (Caps(1, 5.0), r"ask 1 questions a day \(UTC\), by CALLGRADE_TENANT_DAY_MAX_QUESTIONS"),
    ],
)
def test_a_refusal_names_its_limit_and_what_costs_nothing_is_not_refused_for_money(
    database: Database, caps: Caps, told: str
) -> None:
    async def main() -> None:
        before = Days(UsageStore(database), NO_CAPS, now=noon)
        await spend(before, "t", 0.1, Usage(1, 1, 0.1))  # the limits were others then
        await before.close()
        days = Days(UsageStore(database), caps, now=noon)
        with pytest.raises(DaySpentError, match=told):
            await spend(days, "t", 0.0001, Usage(1, 1, 0.0001))
        if caps.questions != 1:
            await spend(days, "t", 0.0, Usage(1, 1, 0.0))
        await days.close()

    asyncio.run(main())


def test_without_the_database_nothing_is_asked_that_cannot_be_counted(tmp_path: Path) -> None:
    away = open_database(f"sqlite:///{tmp_path}/no/store.db")

    async def main() -> None:
        days = Days(UsageStore(away), Caps(usd=1.0))
        with pytest.raises(DaySpentError, match="the database is away") as spent:
            await spend(days, "t", 0.1, Usage(1, 1, 0.1))
        assert spent.value.retry_after == RETRY_S
        await days.close()

    asyncio.run(main())


def test_a_full_disk_refuses_no_question_within_the_caps(tmp_path: Path) -> None:
    caps = Caps(questions=3, usd=1.0)

    async def spend_all(store: UsageStore) -> Days:
        days = Days(store, caps, now=noon)
        for _ in range(2):
            await spend(days, "t", 0.1, Usage(1, 1, 0.1))
        with pytest.raises(DaySpentError, match="3 questions"):
            await spend(days, "t", 0.1, Usage(1, 1, 0.1))
        return days

    with small(tmp_path / "disk"), asyncio.Runner() as runner:
        database = open_new_store(tmp_path / "disk")
        store = UsageStore(database)
        assert store.add("t", TODAY, UsageAmount(questions=1), caps)
        with (tmp_path / "disk" / "filler").open("wb", buffering=0) as file:
            fill(file)
        days = runner.run(spend_all(store))
        assert [day.questions for day in store.list_days(TODAY)] == [1]
        (tmp_path / "disk" / "filler").unlink()
        runner.run(days.close())
        assert [(day.questions, day.cost_usd) for day in store.list_days(TODAY)] == [(3, 0.2)]
        database.close()

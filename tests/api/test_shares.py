"""Shares and turns: what one name wants leaves room for the next, in any order of events."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.fairness.shares import Shares
from service.api.fairness.turns import MAX_ACCOUNTS, Threads, Turns

EVENTS = st.lists(st.tuples(st.booleans(), st.sampled_from("abcd"), st.integers(1, 5)), max_size=60)


@given(most=st.integers(1, 40), events=EVENTS)
def test_what_is_held_adds_up_and_never_leaves_less_than_the_last_one_took(most, events):
    shares, held = Shares(most), Counter[str]()
    for is_taken, name, amount in events:
        if is_taken and shares.take(name, amount):
            held[name] += amount
            assert most - shares.total >= held[name] - amount
        elif not is_taken and held[name]:
            shares.give(name, held.pop(name))
        assert shares.total == held.total() <= most
        assert all(shares.count_held(name) == held[name] for name in "abcd")


def test_a_name_has_no_more_than_it_is_allowed_in_any_case():
    shares = Shares(100, each=3)
    assert sum(shares.take("a") for _ in range(10)) == 3
    assert shares.take("b", 3)


async def order_of(turns: Turns, wanted: list[tuple[str, float]]) -> str:
    """In which order names have their turns at one place, all of which are asked for while the place is taken."""
    done: list[str] = []

    async def one(name: str, cost: float) -> None:
        await turns.take(name, cost=cost)
        done.append(name)
        await asyncio.sleep(0)
        turns.give(name)

    assert turns.take_now("first")
    tasks = [asyncio.create_task(one(name, cost)) for name, cost in wanted]
    await asyncio.sleep(0)
    turns.give("first")
    await asyncio.gather(*tasks)
    return "".join(done)


@pytest.mark.parametrize(
    ("wanted", "order"),
    [
        ([("a", 1.0)] * 3 + [("b", 1.0)] * 3, "ababab"),
        ([("a", 100.0)] * 3 + [("b", 1.0)] * 3, "abbbaa"),
        ([("a", 2.0)] * 3 + [("b", 1.0)] * 4, "abbabba"),
        ([("a", 1.0)] * 2 + [("b", 1.0)] * 2 + [("c", 1.0)], "abcab"),
    ],
)
def test_who_has_had_the_least_comes_next(wanted, order):
    assert asyncio.run(order_of(Turns(1), wanted)) == order


def test_time_without_work_earns_nothing():
    async def run() -> str:
        turns = Turns(1)
        await order_of(turns, [("a", 1.0)] * 50)
        return await order_of(turns, [("a", 1.0)] * 3 + [("b", 1.0)] * 3)

    assert asyncio.run(run()) in ("ababab", "bababa")


def test_who_stops_waiting_takes_no_turn_and_loses_none():
    async def run() -> None:
        turns = Turns(1)
        assert turns.take_now("a")
        gone, late, stays = (asyncio.create_task(turns.take(name)) for name in "bca")
        await asyncio.sleep(0)
        gone.cancel()
        turns.give("a")
        await asyncio.sleep(0)
        late.cancel()  # its turn may have come already
        await asyncio.wait([gone, late])
        if not late.cancelled():
            turns.give("c")
        await asyncio.wait_for(stays, 5)
        turns.give("a")
        assert turns.take_now("d")

    asyncio.run(run())


def test_accounts_of_names_that_are_gone_are_forgotten():
    turns = Turns(4)
    assert turns.take_now("stays")
    for number in range(3 * MAX_ACCOUNTS):
        assert turns.take_now(f"{number}")
        turns.give(f"{number}")
    assert len(turns._accounts) <= MAX_ACCOUNTS + 1
    turns.give("stays")
    assert not turns._accounts


def test_work_that_nobody_waits_for_keeps_its_turn_until_it_is_done():
    async def run() -> None:
        import threading

        threads, go, began = Threads(1, name="test"), threading.Event(), threading.Event()

        def slow() -> None:
            began.set()
            assert go.wait(60)

        first = asyncio.create_task(threads.run("a", slow))
        await asyncio.to_thread(began.wait, 60)
        first.cancel()
        await asyncio.wait([first])
        second = asyncio.create_task(threads.run("b", lambda: "b"))
        done, _ = await asyncio.wait([second], timeout=0.05)
        assert not done
        go.set()
        assert await asyncio.wait_for(second, 60) == "b"

    asyncio.run(run())

"""Shares and turns: what one name wants leaves room for the next, in any order of events."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.fairness import Shares, Threads

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


def order_of(wanted: str) -> str:
    """In which order names get the one thread, all of which ask for it while it is taken."""

    async def run() -> str:
        threads, go, done = Threads(1, name="test"), threading.Event(), list[str]()
        first = asyncio.create_task(threads.run("first", lambda: go.wait(60)))
        await asyncio.sleep(0)
        rest = [asyncio.create_task(threads.run(name, lambda name=name: done.append(name))) for name in wanted]
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(first, *rest)
        return "".join(done)

    return asyncio.run(run())


@pytest.mark.parametrize(("wanted", "order"), [("aaabbb", "ababab"), ("aaaab", "abaaa"), ("aabbc", "abcab")])
def test_names_take_turns_however_many_wait_of_one(wanted: str, order: str) -> None:
    assert order_of(wanted) == order


def test_of_several_threads_one_name_never_has_all() -> None:
    async def run() -> None:
        threads, go = Threads(4, name="test"), threading.Event()
        greedy = [asyncio.create_task(threads.run("a", lambda: go.wait(60))) for _ in range(10)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(threads.run("b", lambda: "b"), 60) == "b"
        go.set()
        assert all(await asyncio.gather(*greedy))

    asyncio.run(run())


def test_who_stops_waiting_takes_no_turn_and_loses_none() -> None:
    async def run() -> None:
        threads, go = Threads(1, name="test"), threading.Event()
        first = asyncio.create_task(threads.run("a", lambda: go.wait(60)))
        await asyncio.sleep(0)
        gone, stays = (asyncio.create_task(threads.run(name, lambda name=name: name)) for name in "bc")
        await asyncio.sleep(0)
        gone.cancel()
        go.set()
        assert await asyncio.wait_for(stays, 60) == "c"
        assert await first
        assert await asyncio.wait_for(threads.run("d", lambda: "d"), 60) == "d"

    asyncio.run(run())


def test_work_that_nobody_waits_for_keeps_its_turn_until_it_is_done():
    async def run() -> None:
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

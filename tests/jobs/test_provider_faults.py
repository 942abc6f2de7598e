"""Batches whose provider fails for a while: they wait, and no item has failed for it."""

from __future__ import annotations

import json
import socket
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from service.jobs.pauses import read_pause
from service.store.access.usage import Caps
from service.store.jobs.chunks import Chunks
from service.store.jobs.jobs import Batch
from service.store.tables import RESULTS
from service.store.times import DAY_S, format_rfc3339
from tests.faults.clock import Clock
from tests.faults.provider import Provider, serving
from tests.jobs.driver import Driver
from tests.jobs.process import STEP, request

ITEMS = 40
REQUESTS = [request(n) for n in range(ITEMS)]
GROUNDED = {"kind": "judge", "judge": "result_groundedness"}

CHUNKS = 4
ROUNDS_AWAY = 3
START = 16
"""Requests that are under way at once before anything is known of a provider."""


def reports(driver: Driver, batch: str) -> list[dict[str, Any]]:
    with driver.database.read() as connection:
        lines = connection.execute(sa.select(RESULTS.c.line).where(RESULTS.c.batch == batch)).scalars()
        return [json.loads(line)["report"] for line in lines]


def outcomes(driver: Driver, batch: str) -> list[dict[str, Any]]:
    return [one["steps"][0]["outcomes"]["argument_plausibility"] for one in reports(driver, batch)]


def check(driver: Driver, batch: str, ended: Batch, items: int = ITEMS) -> None:
    """That every item was scored with its judge's answer."""
    assert (ended.status, ended.request_counts.completed) == ("completed", items)
    assert {outcome["kind"] for outcome in outcomes(driver, batch)} == {"scored"}
    assert (ended.reason, ended.resume_at) == (None, None)


# model, seconds that it lasts, most requests meanwhile, seconds until the end after it, why the batch pauses
STORMS = [
    ("fault-429-after-2-s60", 60, START + 60 / 2, 10, None),
    ("fault-503-s120", 120, START + 20, 60, "provider_error"),  # sleeps that overlap add up on the tests' clock
    ("fault-401-s240", 240, START + 240 / 60 + 1, 240, "unauthorized"),
    ("fault-404-s180", 180, CHUNKS * START * (180 / 60 + 1), 240, "unknown_model"),
]


@pytest.mark.parametrize("storm", STORMS)
def test_what_lasts_for_a_while_is_sat_out(
    tmp_path: Path, provider: Provider, clock: Clock, storm: tuple[str, float, float, float, str | None]
) -> None:
    """Whoever watches is told why; what only people can mend is looked at once a minute."""
    model, lasts, most, after, cause = storm
    driver = Driver(tmp_path, provider, clock, model)
    batch = driver.submit(REQUESTS)
    check(driver, batch, driver.run(batch))
    times = [one.at for one in provider.requests]
    in_vain = [at for at in times if at < times[0] + lasts]
    assert len(in_vain) <= most
    assert times[-1] < times[0] + lasts + after
    paused = next((one for one in driver.seen if one.status == "paused_provider"), None)
    if cause is None:
        assert all(later - earlier >= 2.0 for earlier, later in pairwise(sorted(set(in_vain))))
    else:
        assert paused is not None
        assert paused.resume_at is not None
        assert (paused.reason or "").startswith(f"{cause}: openai/{model}: ")
        assert read_pause(paused.reason) == (None if cause == "provider_error" else (cause, f"openai/{model}"))


def test_a_provider_that_is_not_there_is_waited_for(tmp_path: Path, clock: Clock) -> None:
    """Nothing failed, and what no provider received is no call."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        away = Provider(now=clock.now, port=free.getsockname()[1])
    driver = Driver(tmp_path, away, clock, "m")
    batch = driver.submit(REQUESTS)
    with ExitStack() as server:

        def come_back() -> None:
            if len(driver.seen) == ROUNDS_AWAY:
                server.enter_context(serving(away, away.port))

        driver.on_round = come_back
        check(driver, batch, ended := driver.run(batch))
    for paused in driver.seen[:ROUNDS_AWAY]:
        assert (paused.status, paused.questions) == ("paused_provider", 0)
        assert read_pause(paused.reason) == ("unreachable", "openai/m")
    assert ended.questions == len(away.requests) == ITEMS


@pytest.mark.parametrize("model", ["fault-503-p30", "fault-reset-p30", "fault-429-after-2-p30"])
def test_what_fails_by_chance_is_tried_until_it_does_not(
    tmp_path: Path, provider: Provider, clock: Clock, model: str
) -> None:
    driver = Driver(tmp_path, provider, clock, model)
    batch = driver.submit(REQUESTS)
    check(driver, batch, driver.run(batch))
    assert len(provider.requests) <= 1.6 * ITEMS + START


def test_a_tenant_whose_day_is_used_up_is_looked_at_again_tomorrow(
    tmp_path: Path, provider: Provider, clock: Clock
) -> None:
    """Until then nothing is tried; `resume` and a worker that starts are tested with the store."""
    driver = Driver(tmp_path, provider, clock, "m")
    driver.caps = Caps(questions=ITEMS // 2)
    batch = driver.submit(REQUESTS, size=ITEMS)
    due: list[object] = []
    driver.on_round = lambda: due.append(Chunks(driver.database, "other").claim())
    check(driver, batch, driver.run(batch))
    assert due == [None, None]
    assert [one.status for one in driver.seen] == ["paused_provider", "finalizing"]
    assert Counter(int(one.at // DAY_S) for one in provider.requests) == {0: ITEMS // 2, 1: ITEMS // 2}
    assert (driver.seen[0].reason or "").startswith("budget_exhausted: openai/m: ")
    assert driver.seen[0].resume_at == format_rfc3339(DAY_S)


CAUSES = {
    "refusal": "refused",
    "not-json": "unparseable",
    "400": "provider_error",
    "filter": "filtered",
    "length": "truncated",
    "wrong-token": "invalid_judgement",
}


@pytest.mark.parametrize("fault", CAUSES)
def test_what_will_not_pass_is_an_outcome_that_was_paid_for(
    tmp_path: Path, provider: Provider, clock: Clock, fault: str
) -> None:
    driver = Driver(tmp_path, provider, clock, f"fault-{fault}")
    batch = driver.submit(REQUESTS[:20])
    ended = driver.run(batch)
    assert ended.status == "completed"
    assert (ended.questions, ended.unpriced_calls) == (len(provider.requests), len(provider.paid))
    assert ended.tokens_in == sum(one.tokens_in for one in provider.paid)
    assert ended.tokens_out == sum(one.tokens_out for one in provider.paid)
    assert {outcome["cause"] for outcome in outcomes(driver, batch)} == {CAUSES[fault]}
    assert {one["verdict"] for one in reports(driver, batch)} == {"undecided"}


PRICE_IN, PRICE_OUT = 0.15e-6, 0.6e-6
WORST = 0.002
"""More than one call can cost, in US dollars."""

TWO = {"id": "two", "criteria": [*STEP["criteria"], {"id": "told", "stage": "integrate", "check": GROUNDED}]}


def two_questions(number: int) -> dict[str, Any]:
    """A request with a question about a call and one about the answer."""
    made = request(number, rubric=TWO)
    result = {"role": "tool", "tool_call_id": "c", "content": json.dumps({"refunded": number})}
    answer = {"role": "assistant", "content": f"Refund order {number} is done."}
    return made | {"trace": made["trace"] | {"messages": [*made["trace"]["messages"], result, answer]}}


def billed(provider: Provider) -> float:
    return sum(PRICE_IN * one.tokens_in + PRICE_OUT * one.tokens_out for one in provider.paid)


def test_a_budget_is_kept_to_the_cent_and_can_be_raised(tmp_path: Path, provider: Provider, clock: Clock) -> None:
    driver = Driver(tmp_path, provider, clock, "gpt-4o-mini", cached=True)
    requests = [two_questions(n) for n in range(70)]
    batch = driver.submit(requests, budget_usd=0.003)
    paused = driver.run(batch)
    assert paused.status == "paused_budget"
    assert 0 < paused.request_counts.completed < 70
    assert paused.cost_usd == pytest.approx(billed(provider), rel=1e-9)
    assert 0.003 - WORST <= billed(provider) <= 0.003
    driver.batches.resume("", batch, budget_usd=10.0)
    ended = driver.run(batch)
    check(driver, batch, ended, 70)
    assert ended.cost_usd == pytest.approx(billed(provider), rel=1e-9)
    again = driver.submit(requests, max_questions=0)
    assert driver.run(again).status == "completed"  # what the cache answers is not asked
    assert len(provider.paid) == 2 * 70

"""Batches whose provider fails for a while: they wait, and no item has failed for it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from service.jobs.pauses import read_pause
from service.store.tables import RESULTS
from tests.faults.clock import Clock
from tests.faults.provider import Provider
from tests.jobs.driver import Driver
from tests.jobs.process import STEP, request

ITEMS = 40
REQUESTS = [request(n) for n in range(ITEMS)]
GROUNDED = {"kind": "judge", "judge": "result_groundedness"}

CHUNKS = 4
START = 16
"""Requests that are under way at once before anything is known of a provider."""


def outcomes(driver: Driver, batch: str) -> list[dict[str, Any]]:
    with driver.database.read() as connection:
        lines = connection.execute(sa.select(RESULTS.c.line).where(RESULTS.c.batch == batch)).scalars()
        return [json.loads(line)["report"]["steps"][0]["outcomes"]["argument_plausibility"] for line in lines]


def verdicts(driver: Driver, batch: str) -> set[str]:
    with driver.database.read() as connection:
        lines = connection.execute(sa.select(RESULTS.c.line).where(RESULTS.c.batch == batch)).scalars()
        return {json.loads(line)["report"]["verdict"] for line in lines}


def kinds(driver: Driver, batch: str) -> set[str]:
    return {outcome["kind"] for outcome in outcomes(driver, batch)}


def test_a_storm_of_429_is_sat_out(tmp_path: Path, provider: Provider, clock: Clock) -> None:
    driver = Driver(tmp_path, provider, clock, "fault-429-after-2-s60")
    batch = driver.submit(REQUESTS)
    ended = driver.run(batch)
    times = [one.at for one in provider.requests]
    storm = [at for at in times if at < times[0] + 60]
    assert (ended.status, ended.request_counts.completed, kinds(driver, batch)) == ("completed", ITEMS, {"scored"})
    assert len(storm) <= START + 60 / 2
    assert all(later - earlier >= 2.0 for earlier, later in pairwise(sorted(set(storm))))
    assert times[-1] < times[0] + 60 + 10


def test_an_outage_of_two_minutes_is_sat_out(tmp_path: Path, provider: Provider, clock: Clock) -> None:
    driver = Driver(tmp_path, provider, clock, "fault-503-s120")
    batch = driver.submit(REQUESTS)
    ended = driver.run(batch)
    times = [one.at for one in provider.requests]
    outage = [at for at in times if at < times[0] + 120]
    assert (ended.status, ended.request_counts.completed, kinds(driver, batch)) == ("completed", ITEMS, {"scored"})
    assert len(outage) <= START + 20
    assert {one.status for one in driver.seen} >= {"paused_provider"}
    assert times[-1] < times[0] + 120 + 60  # sleeps that overlap add up on the tests' clock


def test_a_key_that_is_refused_pauses_the_batch(tmp_path: Path, provider: Provider, clock: Clock) -> None:
    driver = Driver(tmp_path, provider, clock, "fault-401-s240")
    batch = driver.submit(REQUESTS)
    ended = driver.run(batch)
    times = [one.at for one in provider.requests]
    refused = [at for at in times if at < times[0] + 240]
    paused = next(one for one in driver.seen if one.status == "paused_provider")
    assert read_pause(paused.reason) == ("unauthorized", "openai/fault-401-s240")
    assert paused.resume_at is not None
    assert len([at for at in refused if at == times[0]]) <= START
    assert len(refused) <= START + 240 / 60 + 1
    assert (ended.status, ended.request_counts.completed, kinds(driver, batch)) == ("completed", ITEMS, {"scored"})
    assert (ended.reason, ended.resume_at) == (None, None)


def test_a_model_that_nobody_knows_pauses_the_batch_and_is_named(
    tmp_path: Path, provider: Provider, clock: Clock
) -> None:
    """Whoever watches is told; when the name is right it goes on, and until then it is looked at once a minute."""
    driver = Driver(tmp_path, provider, clock, "fault-404-s180")
    batch = driver.submit(REQUESTS)
    ended = driver.run(batch)
    times = [one.at for one in provider.requests]
    paused = next(one for one in driver.seen if one.status == "paused_provider")
    assert read_pause(paused.reason) == ("unknown_model", "openai/fault-404-s180")
    in_vain = [at for at in times if at < times[0] + 180]
    assert len(in_vain) <= CHUNKS * START * (180 / 60 + 1)
    assert (ended.status, ended.request_counts.completed, kinds(driver, batch)) == ("completed", ITEMS, {"scored"})


@pytest.mark.parametrize("model", ["fault-503-p30", "fault-reset-p30", "fault-429-after-2-p30"])
def test_what_fails_by_chance_is_tried_until_it_does_not(
    tmp_path: Path, provider: Provider, clock: Clock, model: str
) -> None:
    driver = Driver(tmp_path, provider, clock, model)
    batch = driver.submit(REQUESTS)
    ended = driver.run(batch)
    assert (ended.status, ended.request_counts.completed, kinds(driver, batch)) == ("completed", ITEMS, {"scored"})
    assert len(provider.requests) <= 1.6 * ITEMS + START


@pytest.mark.parametrize(
    ("model", "cause"),
    [
        ("fault-refusal", "refused"),
        ("fault-not-json", "unparseable"),
        ("fault-400", "provider_error"),
        ("fault-filter", "filtered"),
        ("fault-length", "truncated"),
        ("fault-off-menu", "invalid_judgement"),
        ("fault-wrong-token", "invalid_judgement"),
    ],
)
def test_what_will_not_pass_is_an_outcome_that_was_paid_for(
    tmp_path: Path, provider: Provider, clock: Clock, model: str, cause: str
) -> None:
    driver = Driver(tmp_path, provider, clock, model)
    batch = driver.submit(REQUESTS[:20])
    ended = driver.run(batch)
    assert ended.status == "completed"
    assert (ended.questions, ended.unpriced_calls) == (len(provider.requests), len(provider.paid))
    assert ended.tokens_in == sum(one.tokens_in for one in provider.paid)
    assert ended.tokens_out == sum(one.tokens_out for one in provider.paid)
    assert {outcome["cause"] for outcome in outcomes(driver, batch)} == {cause}
    assert verdicts(driver, batch) == {"undecided"}


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
    batch = driver.submit([two_questions(n) for n in range(70)], budget_usd=0.003)
    paused = driver.run(batch)
    assert paused.status == "paused_budget"
    assert 0 < paused.request_counts.completed < 70
    assert paused.cost_usd == pytest.approx(billed(provider), rel=1e-9)
    assert 0.003 - WORST <= billed(provider) <= 0.003
    driver.batches.resume("", batch, budget_usd=10.0)
    ended = driver.run(batch)
    assert (ended.status, ended.request_counts.completed, kinds(driver, batch)) == ("completed", 70, {"scored"})
    assert ended.cost_usd == pytest.approx(billed(provider), rel=1e-9)
    assert len(provider.paid) == 2 * 70


def test_no_more_questions_are_asked_than_may_be(tmp_path: Path, provider: Provider, clock: Clock) -> None:
    driver = Driver(tmp_path, provider, clock, "gpt-4o-mini", cached=True)
    requests = [two_questions(n) for n in range(60)]
    batch = driver.submit(requests, max_questions=77)
    paused = driver.run(batch)
    assert (paused.status, paused.questions, len(provider.requests)) == ("paused_budget", 77, 77)
    assert "questions" in (paused.reason or "")
    assert 0 < paused.request_counts.completed < 60
    driver.batches.resume("", batch, max_questions=120)
    ended = driver.run(batch)
    assert (ended.status, ended.request_counts.completed, kinds(driver, batch)) == ("completed", 60, {"scored"})
    assert (ended.questions, len(provider.requests)) == (120, 120)
    again = driver.submit(requests, max_questions=0)
    assert driver.run(again).status == "completed"  # what the cache answers is not asked
    assert len(provider.requests) == 120

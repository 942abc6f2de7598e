"""What a request may ask and cost, what a tenant may in a day, what is told of it, and that a repeated request costs nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from service.api.app import create_app
from service.asking.budget.ask_limits import AskLimits
from service.asking.budget.days import NO_CAPS, Days
from service.asking.cached_replies import NoCache
from service.asking.calls import ModelCaller, Observer
from service.asking.judging import Judges, Judging
from service.asking.limits.provider_gate import ProviderGates
from service.engine import Engine, plan
from service.registry import Registry
from service.settings import Settings
from service.store.access.answers import CLAIM_S, KEPT_S, MAX_KEYS, Answers, KeyedRequest, StoredAnswer
from service.store.access.keys import Keys
from service.store.access.usage import DAY_S, Caps, UsageStore
from service.store.database import Database
from service.store.tables import ANSWERS
from tests.api.asgi_caller import JSON, exchange
from tests.api.asgi_caller import Answer as Answered
from tests.faults.clock import Clock
from tests.faults.provider import Provider
from tests.jobs.plain import Plain

MODEL = "openai/says-yes"

Post = Callable[..., Answered]


def rubric(**judge: Any) -> dict[str, Any]:
    """One question about each call."""
    asked = {"id": "asked", "level": "step", "question": "?", "scale": {"yes": 1, "no": 0}, "shows": ["call"], **judge}
    return {
        "id": "own",
        "judges": [asked],
        "criteria": [{"id": "asked", "stage": "arguments", "check": {"kind": "judge", "judge": "asked"}}],
    }


def body(calls: int = 1, **more: Any) -> dict[str, Any]:
    events = [{"user": "?"}, *[{"call": {"name": "f", "arguments": {"n": n}}} for n in range(calls)]]
    return {"rubric": rubric(), "trace": {"format": "callgrade", "tools": [{"name": "f"}], "events": events}, **more}


def service(
    provider: Provider, database: Database | None, caps: Caps = NO_CAPS, limits: AskLimits | None = None
) -> FastAPI:
    """The service with a judge and no cache, so that each question is a request."""
    observers: list[Observer] = []
    caller = ModelCaller(Plain(provider.base()), ProviderGates(Clock()), observers=observers)
    judging = Judging(caller, NoCache(), Judges(MODEL), observers=observers)
    days = None if database is None else Days(UsageStore(database), caps)
    engine = Engine(Registry(), judging=judging, ask_limits=limits or AskLimits(), days=days)
    return create_app(engine=engine, database=database)


@pytest.fixture
def post() -> Iterator[Post]:
    with asyncio.Runner() as runner:

        def one(
            app: FastAPI, given: Any = None, path: str = "/v1/score", method: str = "POST", **headers: str
        ) -> Answered:
            async def chunks() -> tuple[bytes, bool]:
                return b"" if given is None else json.dumps(given).encode(), False

            told = JSON | {name.replace("_", "-"): value for name, value in headers.items()}
            return runner.run(exchange(app, method, path, chunks, told, b""))

        yield one


# A request


@pytest.mark.parametrize(
    ("given", "pointer", "told"),
    [
        (body(11), "/rubric/criteria", "11 requests to judges; at most 10"),
        (body(2, rubric=rubric(votes=6)), "/rubric/criteria", "12 requests to judges; at most 10"),
        (body(budget_usd=2.5), "/budget_usd", "expected at most 2 (CALLGRADE_REQUEST_MAX_USD), not 2.5"),
        (body(rubric=rubric(models=[f"m{n}" for n in range(20_000)])), "/rubric/judges/0/models", "20"),
        (body(rubric=rubric() | {"judges": [rubric()["judges"][0] | {"id": f"j{n}"} for n in range(20_000)]}),
         "/rubric", "20000 judges; at most 200"),
    ],
    ids=["questions", "votes", "dollars", "a jury", "judges"],
)  # fmt: skip
def test_what_may_not_be_asked_is_refused_before_anything_is(
    provider: Provider, store: Database, post: Post, given: Any, pointer: str, told: str
) -> None:
    answer = post(service(provider, store, limits=AskLimits(10, 2.0)), given)
    (place,) = answer.problem["errors"]
    assert (answer.status, place["pointer"]) == (422, pointer)
    assert told in place["detail"]
    assert not provider.requests


def test_a_trace_of_200_calls_in_as_many_turns_may_be_judged() -> None:
    turn = [{"user": "?"}, {"call": {"name": "f", "arguments": {"n": 1}}, "result": {"n": 1}}, {"assistant": "1"}]
    given = {"trace": {"format": "callgrade", "tools": [{"name": "f"}], "events": turn * 200}}
    asks = plan(given).asks
    assert len(asks) == 800
    AskLimits().admit_questions(asks)


# A day


def test_a_day_that_is_used_up_leaves_questions_open(provider: Provider, store: Database, post: Post) -> None:
    app = service(provider, store, Caps(questions=3))
    whole = post(app, body(2)).json
    rest = post(app, body(2)).json
    refused = post(app, body(2))
    assert len(provider.requests) == 3
    assert [whole["verdict"], rest["verdict"]] == ["pass", "undecided"]
    outcomes = [step["outcomes"]["asked"] for step in rest["steps"]]
    (open_one,) = [one for one in outcomes if one["kind"] == "errored"]
    assert (open_one["cause"], "3 questions a day" in open_one["reason"]) == ("budget_exhausted", True)
    assert refused.status == 429
    assert "3 questions a day" in refused.problem["detail"]
    assert 0 < int(refused.headers["retry-after"]) <= DAY_S


def test_in_a_list_an_item_is_told_that_the_day_is_used_up(provider: Provider, store: Database, post: Post) -> None:
    told = post(
        service(provider, store, Caps(questions=1)), [body(), body(rubric=rubric(question="??"))], "/v1/score/many"
    ).json
    assert (told["succeeded"], told["failed"]) == (1, 1)
    assert [one["error"]["status"] for one in told["results"] if one["error"]] == [429]


# Usage


def test_a_tenant_is_told_of_its_own_usage_and_an_admin_of_all(provider: Provider, store: Database, post: Post) -> None:
    made = Keys(store)
    keys = {name: made.create(name=name, tenant=name, scopes=["score"])[1] for name in ("a", "b")}
    keys["admin"] = made.create(name="admin", tenant="ops", scopes=["admin"])[1]
    app = service(provider, store)
    for name, calls in (("a", 2), ("b", 3), ("a", 1)):
        assert post(app, body(calls), authorization=f"Bearer {keys[name]}").status == 200
    told = {name: post(app, None, "/v1/usage", "GET", authorization=f"Bearer {key}").json for name, key in keys.items()}
    found = {name: [(one["tenant"], one["questions"]) for one in report["data"]] for name, report in told.items()}
    assert found == {"a": [("a", 3)], "b": [("b", 3)], "admin": [("a", 3), ("b", 3)]}
    (mine,) = told["a"]["data"]
    assert mine == {
        "tenant": "a",
        "day": told["a"]["today"],
        "questions": 3,
        "cached": 0,
        "tokens_in": 3,
        "tokens_out": 3,
        "cost_usd": 0.0,
        "unpriced_calls": 0,
        "uncertain_usd": 0.0,
    }
    metrics = post(app, None, "/metrics", "GET", authorization=f"Bearer {keys['admin']}").body.decode()
    assert 'callgrade_today_questions{tenant="a"} 3.0' in metrics
    assert f'callgrade_judge_request_seconds_count{{model="{MODEL}"}} 6.0' in metrics


def test_the_label_of_a_model_is_one_that_was_set(provider: Provider, store: Database, post: Post) -> None:
    settings = Settings(judge_model=MODEL, judge_api_base=provider.base(), tenant_day_max_usd=7.0)
    app = create_app(settings, engine=None, database=store)
    refused = post(app, body(judge_model="openai/made-up-by-a-caller"))
    assert refused.problem["errors"][0]["pointer"] == "/judge_model"
    told = post(app, None, "/v1/usage", "GET").json
    assert (told["max_questions"], told["max_usd"], told["data"]) == (1_000_000, 7.0, [])


# The same again


def test_a_request_that_is_repeated_is_paid_once(provider: Provider, store: Database, post: Post) -> None:
    app = service(provider, store)
    first, again = [post(app, body(2), idempotency_key="k") for _ in range(2)]
    assert (first.status, again.body, len(provider.requests)) == (200, first.body, 2)
    told = {name: value for name, value in first.headers.items() if name.startswith("x-callgrade-judge")}
    assert told
    assert {name: again.headers.get(name) for name in told} == told
    assert (first.headers.get("idempotency-replayed"), again.headers["idempotency-replayed"]) == (None, "true")
    other = post(app, body(1), idempotency_key="k")
    assert other.status == 422
    assert "used for another body" in other.problem["detail"]
    assert post(app, body(2), idempotency_key="another").status == 200
    assert len(provider.requests) == 4


def test_the_key_of_a_request_that_failed_is_free(provider: Provider, store: Database, post: Post) -> None:
    app = service(provider, store, limits=AskLimits(1))
    assert post(app, body(2), idempotency_key="k").status == 422
    assert post(app, body(1), idempotency_key="k").status == 200
    assert post(app, body(1, judges="off"), idempotency_key="off").status == 200


def test_keys_of_tenants_are_their_own(provider: Provider, store: Database, post: Post) -> None:
    keys = [Keys(store).create(name=name, tenant=name, scopes=["score"])[1] for name in ("a", "b")]
    app = service(provider, store)
    answers = [post(app, body(n), authorization=f"Bearer {key}", idempotency_key="k") for n, key in enumerate(keys, 1)]
    assert [one.status for one in answers] == [200, 200]


@pytest.mark.parametrize("key", ["", "ä", "k" * 256])
def test_what_is_no_key_is_refused(provider: Provider, store: Database, post: Post, key: str) -> None:
    assert post(service(provider, store), body(), idempotency_key=key).status == 400


def test_a_twin_is_told_to_wait_and_then_given_the_answer(provider: Provider, store: Database) -> None:
    provider.latency = 0.5
    app = service(provider, store)

    async def one() -> Answered:
        async def chunks() -> tuple[bytes, bool]:
            return json.dumps(body()).encode(), False

        return await exchange(app, "POST", "/v1/score", chunks, JSON | {"idempotency-key": "k"}, b"")

    async def both() -> list[Answered]:
        together = await asyncio.gather(one(), one())
        return [*together, await one()]

    *together, later = asyncio.run(both())
    assert sorted(answer.status for answer in together) == [200, 409]
    (refused,) = [answer for answer in together if answer.status == 409]
    assert refused.headers["retry-after"] == "1"
    assert later.body == next(answer.body for answer in together if answer.status == 200)
    assert len(provider.requests) == 1


def asked(key: str, claim: str = "c", tenant: str = "t") -> KeyedRequest:
    return KeyedRequest(tenant, key, "f", claim)


def test_answers_are_kept_for_a_day_and_lost_claims_for_less(database: Database) -> None:
    answers = Answers(database)

    def aged(seconds: float) -> None:
        with database.begin() as connection:
            connection.execute(ANSWERS.update().values(claimed_at=ANSWERS.c.claimed_at - seconds))

    assert answers.begin(asked("a")) is None
    answers.keep(asked("a"), StoredAnswer({"x": "y"}, b"report"))
    assert answers.begin(asked("lost")) is None
    aged(CLAIM_S + 1)
    assert answers.begin(asked("a", "d")) == StoredAnswer({"x": "y"}, b"report")
    assert answers.begin(asked("lost", "d")) is None
    answers.keep(asked("lost"), StoredAnswer({}, b"too late"))  # by the one that was taken for lost
    answers.keep(asked("lost", "d"), StoredAnswer({}, b"in time"))
    assert answers.begin(asked("lost", "e")) == StoredAnswer({}, b"in time")
    aged(KEPT_S)
    answers.forget_old()
    with database.read() as connection:
        assert not connection.execute(ANSWERS.select()).all()


def test_as_many_answers_are_kept_as_may_be(database: Database) -> None:
    answers = Answers(database)
    row = {"tenant": "t", "fingerprint": "f", "claim": "c", "headers": "{}", "body": b"x"}
    with database.begin() as connection:
        rows = [row | {"key_hash": f"{n}", "claimed_at": 2e9 + n} for n in range(MAX_KEYS)]
        connection.execute(ANSWERS.insert(), [*rows, row | {"tenant": "other", "key_hash": "0", "claimed_at": 2e9}])
    assert answers.begin(asked("one more")) is None
    with database.read() as connection:
        found = [(one.tenant, one.key_hash) for one in connection.execute(ANSWERS.select())]
    assert len(found) == MAX_KEYS + 1
    assert ("t", "0") not in found
    assert ("other", "0") in found

"""What a request may ask and cost, what a tenant may in a day, what is told of it, and that a repeated request costs nothing."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI

from service.api.app import create_app
from service.asking.budget.days import NO_CAPS, Days
from service.asking.budget.reservations import AskLimits
from service.asking.cache.guard import Cache
from service.asking.calls import ModelCaller
from service.asking.judging import Judges, Judging
from service.asking.limits import ProviderGate
from service.engine import Engine
from service.registry import Registry
from service.store.access.keys import Keys
from service.store.access.usage import Caps, UsageStore
from service.store.database import Database
from service.store.times import DAY_S
from tests.api.asgi_caller import Ask, bearer
from tests.api.conftest import Score
from tests.faults.clock import Clock
from tests.faults.provider import Provider
from tests.jobs.plain import Plain

MODEL = "openai/says-yes"


def rubric(**judge: Any) -> dict[str, Any]:
    """One question about each call."""
    asked = {"id": "asked", "level": "step", "question": "?", "scale": {"yes": 1, "no": 0}, "shows": ["call"], **judge}
    criterion = {"id": "asked", "stage": "arguments", "check": {"kind": "judge", "judge": "asked"}}
    return {"id": "own", "judges": [asked], "criteria": [criterion]}


def body(calls: int = 1, **more: Any) -> dict[str, Any]:
    events = [{"user": "?"}, *[{"call": {"name": "f", "arguments": {"n": n}}} for n in range(calls)]]
    return {"rubric": rubric(), "trace": {"format": "callgrade", "tools": [{"name": "f"}], "events": events}, **more}


def service(
    provider: Provider, database: Database | None, caps: Caps = NO_CAPS, limits: AskLimits | None = None
) -> FastAPI:
    """The service with a judge and no cache, so that each question is a request."""
    caller = ModelCaller(Plain(provider.base()), lambda _: ProviderGate(Clock()))
    judging = Judging(caller, Cache(), Judges(MODEL), observers=caller.observers)
    days = None if database is None else Days(UsageStore(database), caps)
    engine = Engine(Registry(), judging=judging, ask_limits=limits or AskLimits(), days=days)
    return create_app(engine=engine, database=database)


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
    provider: Provider, store: Database, score: Score, given: Any, pointer: str, told: str
) -> None:
    answer = score(service(provider, store, limits=AskLimits(10, 2.0)), given)
    (place,) = answer.problem["errors"]
    assert (answer.status, place["pointer"]) == (422, pointer)
    assert told in place["detail"]
    assert not provider.requests


# A day


def test_a_day_that_is_used_up_leaves_questions_open(provider: Provider, store: Database, score: Score) -> None:
    app = service(provider, store, Caps(questions=3))
    whole = score(app, body(2)).json
    rest = score(app, body(2)).json
    refused = score(app, body(2))
    assert len(provider.requests) == 3
    assert [whole["verdict"], rest["verdict"]] == ["pass", "undecided"]
    outcomes = [step["outcomes"]["asked"] for step in rest["steps"]]
    (open_one,) = [one for one in outcomes if one["kind"] == "errored"]
    assert (open_one["cause"], "3 questions a day" in open_one["reason"]) == ("budget_exhausted", True)
    assert refused.status == 429
    assert "3 questions a day" in refused.problem["detail"]
    assert 0 < int(refused.headers["retry-after"]) <= DAY_S


# Usage


def test_a_tenant_is_told_of_its_own_usage_and_an_admin_of_all(
    ask: Ask, provider: Provider, store: Database, score: Score
) -> None:
    made = Keys(store)
    keys = {name: made.create(name=name, tenant=name, scopes=["score"])[1] for name in ("a", "b")}
    keys["admin"] = made.create(name="admin", tenant="ops", scopes=["admin"])[1]
    app = service(provider, store)
    for name, calls in (("a", 2), ("b", 3), ("a", 1)):
        assert score(app, body(calls), authorization=f"Bearer {keys[name]}").status == 200
    told = {name: ask("GET", "/v1/usage", app=app, headers=bearer(key)).json for name, key in keys.items()}
    found = {name: [(one["tenant"], one["questions"]) for one in report["data"]] for name, report in told.items()}
    assert found == {"a": [("a", 3)], "b": [("b", 3)], "admin": [("a", 3), ("b", 3)]}
    (mine,) = told["a"]["data"]
    assert (mine["tenant"], mine["day"], mine["questions"], mine["cached"]) == ("a", told["a"]["today"], 3, 0)
    assert (mine["tokens_in"], mine["tokens_out"], mine["cost_usd"], mine["unpriced_calls"]) == (3, 3, 0.0, 0)
    metrics = ask("GET", "/metrics", app=app, headers=bearer(keys["admin"])).body.decode()
    assert 'callgrade_today_questions{tenant="a"} 3.0' in metrics
    assert f'callgrade_judge_request_seconds_count{{model="{MODEL}"}} 6.0' in metrics

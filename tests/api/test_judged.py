"""Judged requests over HTTP, against a provider that goes wrong: the outcome of each fault, and what it costs in requests."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from service.api.app import create_app
from service.asking.budget.days import Days
from service.asking.cache.disk import DiskCache
from service.asking.cache.guard import Cache
from service.asking.calls import ModelCaller, RetryPolicy
from service.asking.judging import Judges, Judging
from service.asking.limits import ProviderGate
from service.asking.model import LiteLLM
from service.engine import Engine
from service.registry import Registry
from service.store.access.usage import Caps, UsageStore
from service.store.database import Database
from tests.api.asgi_caller import list_pointers
from tests.faults.clock import Clock
from tests.faults.disk import fill, small
from tests.faults.provider import Provider
from tests.jobs.process import STEP
from tests.jobs.process import request as body
from tests.stores import open_new_store

KEY = "canary-key-of-no-known-shape-7421"
ATTEMPTS = 3
POLICY = RetryPolicy(attempts=ATTEMPTS, attempt_s=20.0)
IMPATIENT = RetryPolicy(attempts=2, attempt_s=0.5)


def application(
    provider: Provider,
    clock: Clock,
    model: str,
    *,
    cache: Cache | None = None,
    policy: RetryPolicy = POLICY,
    database: Database | None = None,
    **judges: Any,
) -> FastAPI:
    """The service with this judge."""
    base = provider.base()
    port = LiteLLM(api_base=base, api_key=KEY, reply="auto")
    chance = random.Random(7)  # noqa: S311 (jitter)
    caller = ModelCaller(port, lambda _: ProviderGate(clock), pricing=port.worst_usd, policy=policy, chance=chance)
    setup = Judges(f"openai/{model}", api_base=base, **judges)
    judging = Judging(caller, cache or Cache(), setup, pricing=port.worst_usd)
    return create_app(engine=Engine(Registry(), judging=judging), database=database)


def kept_in(folder: Path) -> DiskCache:
    return DiskCache(folder, ttl=3_600.0, max_bytes=2**24, patience=30.0)  # a busy machine is no failure


def judged(report: dict[str, Any]) -> dict[str, Any]:
    return report["steps"][0]["outcomes"]["argument_plausibility"]


ONCE, ALL = 1, ATTEMPTS
REPAIRED = 2
"""A reply that cannot be used is asked for once more."""

FAULTS = [
    ("fault-429-after-2", "provider_error", ALL),
    ("fault-quota", "quota_exhausted", ONCE),
    ("fault-401", "unauthorized", ONCE),
    ("fault-reset", "provider_error", ALL),
    ("fault-refusal", "refused", ONCE),
    ("fault-length", "truncated", ONCE),
    ("fault-not-json", "unparseable", REPAIRED),
]
"""One of each kind that is dealt with in its own way; `tests/asking/test_model.py` has all that a provider can do."""


@pytest.mark.parametrize(("model", "cause", "requests"), FAULTS)
def test_a_fault_is_an_outcome_and_never_a_score(provider, clock, score, model, cause, requests):
    answer = score(application(provider, clock, model), body())
    report = answer.json
    assert answer.status == 200
    assert (judged(report)["kind"], judged(report)["cause"]) == ("errored", cause)
    assert provider.counts == {model: requests}
    assert (report["score"], report["coverage"], report["steps"][0]["outcomes"]["schema"]["value"]) == (1.0, 0.5, 1.0)
    assert KEY not in answer.body.decode()


@pytest.mark.parametrize("model", ["fault-hang", "fault-drip"])
def test_a_provider_that_stalls_is_left_at_the_deadline(provider, clock, score, model):
    answer = score(application(provider, clock, model, policy=IMPATIENT), body())
    assert judged(answer.json)["cause"] == "timeout"
    assert provider.counts == {model: IMPATIENT.attempts}


def test_a_judge_that_is_down_fails_the_request_where_that_is_asked(provider, clock, score, ask):
    app = application(provider, clock, "fault-500")
    answer = score(app, body(on_judge_error="error"))
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert "provider_error" in answer.problem["detail"]
    told = ask("GET", "/metrics", app=app).body.decode()
    assert 'callgrade_unscored_total{cause="provider_error",kind="errored"} 1.0' in told


def test_the_modes(provider, clock, score, tmp_path: Path):
    app = application(provider, clock, "good", cache=kept_in(tmp_path / "cache"))
    off, cached = score(app, body(judges="off")).json, score(app, body(judges="cached")).json
    assert (off["provenance"]["judges"], [each["why"] for each in off["not_asked"]]) == ("off", ["judges are off"])
    assert judged(cached) == {
        "kind": "skipped", "cause": "not_asked", "reason": "the cache has no answer, and no model is asked", "findings": [],
        "open": True, "bounds": None,
    }  # fmt: skip
    assert provider.requests == []
    score(app, body())
    assert judged(score(app, body(judges="cached")).json)["value"] == 1.0
    assert provider.counts == {"good": 1}


def test_a_budget_bounds_what_many_questions_cost(provider, clock, score):
    app = application(provider, clock, "gpt-4o-mini")
    votes = {**STEP, "judges": [judge(votes=15, id="argument_plausibility")]}
    report = score(app, body(rubric=votes, budget_usd=0.0008)).json
    billed = 0.15e-6 * sum(p.tokens_in for p in provider.paid) + 0.6e-6 * sum(p.tokens_out for p in provider.paid)
    assert 0 < len(provider.paid) < 15
    assert billed <= 0.0008
    assert judged(report)["kind"] in ("scored", "errored")


def judge(**more: Any) -> dict[str, Any]:
    """A judge that a request brings."""
    return {"id": "own", "level": "step", "question": "Is it right?", "scale": {"yes": 1, "no": 0}, **more}


ASKS_OWN = {
    "id": "own",
    "criteria": [{"id": "argument_plausibility", "stage": "arguments", "check": {"kind": "judge", "judge": "own"}}],
}


def test_models_that_a_request_names_must_be_allowed(provider, clock, score):
    app = application(provider, clock, "good", allowed=frozenset({"openai/says-doubtful", "openai/says-no"}))
    answer = score(app, body(judge_model="openai/other"))
    assert (answer.status, list_pointers(answer.problem)) == (422, ["/judge_model"])
    jury = {**ASKS_OWN, "judges": [judge(models=["openai/other"])]}
    answer = score(app, body(rubric=jury))
    assert (answer.status, list_pointers(answer.problem)) == (422, ["/rubric/judges"])
    assert provider.requests == []
    report = score(app, body(judge_model="openai/says-doubtful")).json
    assert (judged(report)["value"], judged(report)["judge"]["label"]) == (0.5, "doubtful")


def test_a_secret_is_nowhere(provider, clock, ask, score, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level("DEBUG")
    folder = tmp_path / "cache"
    app = application(provider, clock, "fault-401-x1", cache=kept_in(folder))
    seen = [score(app, body(n)).body for n in range(3)]
    seen.append(ask("GET", "/metrics", app=app).body)
    kept = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    assert kept
    assert KEY.encode() not in b"".join([*seen, *kept, caplog.text.encode()])
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_cache_that_fails_costs_only_the_cache_and_is_seen(provider, clock, ask, score, tmp_path: Path, caplog):
    place = tmp_path / "cache"
    place.touch()  # a file, where the folder of the cache should be
    app = application(provider, clock, "good", cache=DiskCache(place, ttl=3_600.0, max_bytes=2**24, rest=0))

    def look() -> tuple[list[str], bool]:
        while (ready := ask("GET", "/readyz", app=app)).status != 200:  # each waits a second for what is loading
            pass
        told = ask("GET", "/metrics", app=app).body.decode()
        return ready.json["warnings"], "callgrade_judge_cache_failing 1.0" in told

    assert look() == ([], False)
    assert judged(score(app, body()).json)["value"] == 1.0
    [warning], failing = look()
    assert failing
    assert "judges are asked again" in warning
    assert "the cache at" in caplog.text
    place.unlink()
    score(app, body(2))
    assert look() == ([], False)
    assert 'callgrade_judge_cache_events_total{event="failures"}' in ask("GET", "/metrics", app=app).body.decode()


def test_a_full_disk_costs_no_judged_score(provider, clock, score, tmp_path: Path):
    with small(tmp_path / "disk"):
        store, cache = open_new_store(tmp_path / "disk"), kept_in(tmp_path / "disk" / "cache")
        with (tmp_path / "disk" / "filler").open("wb", buffering=0) as file:
            fill(file)
        app = application(provider, clock, "good", cache=cache, database=store)
        app.state.parts.engine.days = Days(UsageStore(store), Caps(questions=1_000, usd=10.0))
        for number in range(2):
            answer = score(app, body(number, store=True))
            assert (answer.status, judged(answer.json)["value"]) == (200, 1.0)
            assert "x-callgrade-score-id" not in answer.headers
        store.close()

"""What tenants see of each other: nothing that is stored, and no answer of a judge that another paid for."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from fastapi import FastAPI

from service.api.app import create_app
from service.asking.model import disconnect
from service.store.access.keys import Keys
from service.store.database import Database
from tests.api.asgi_caller import JSON, LINES, Answer, Ask, Client, bearer, exchange, jsonl
from tests.api.played_client import PlayedClient
from tests.api.test_calibrations import items
from tests.api.test_hostile import BODY_ROUTES, LINES_ROUTES
from tests.api.test_judged import application, judged, kept_in
from tests.api.test_labels import body, label, score, submit
from tests.faults.clock import Clock
from tests.faults.provider import Provider
from tests.jobs.process import request

T = TypeVar("T")

SHARED = ("/livez", "/readyz", "/metrics", "/v1/rubrics", "/v1/fits", "/v1/judges", "/v1/audit")
"""What is the same for all tenants, or not for them."""

BODIES = {("POST", path) for path in BODY_ROUTES}
"""What is read before a database is looked for."""


def make_keys(database: Database, *names: str) -> list[str]:
    """A key of a tenant for each name, for all that a tenant does."""
    scopes = ("score", "batch", "calibrate", "label")
    return [Keys(database).create(name=name, tenant=name, scopes=scopes)[1] for name in names]


def list_operations(client: Client) -> list[tuple[str, str]]:
    """Each method and path of the document, which any key shows."""
    paths = client("GET", "/openapi.json").json["paths"]
    return [(method.upper(), path) for path, known in paths.items() for method in known]


def test_what_is_anothers_is_as_unknown_as_what_never_was(ask: Ask, store: Database) -> None:
    one = PlayedClient(ask, store)
    one.key, theirs = make_keys(store, "one", "other")
    other = Client(ask, one.app, theirs)
    operations = list_operations(one)
    lists = [path for method, path in operations if method == "GET" and "{" not in path and path not in SHARED]
    before = {path: other("GET", path).body for path in lists}
    batch = submit(one, 2)
    made = {
        "batch_id": batch,
        "calibration_id": one.submit(items(2))["id"],
        "score_id": score(one),
        "label_id": label(one, f"{batch}/0", annotator=None)["label"]["id"],
    }
    assert {path: other("GET", path).body for path in lists} == before
    named = set[str]()
    for method, path in operations:
        name, *_ = [*re.findall(r"\{(\w+)\}", path), ""]
        if name in made:
            named.add(name)
            ids = made[name], made[name][:-4] + "0000"  # another's, and one that never was
            answers = [other(method, path.replace(f"{{{name}}}", id_).replace("{index}", "0")) for id_ in ids]
            assert [answer.status for answer in answers] == [404, 404], (method, path)
            assert answers[0].problem == answers[1].problem
    assert named == made.keys()
    assert one("GET", f"/v1/batches/{batch}").json["status"] == "completed"
    assert one("GET", "/v1/labels").json["data"]


def test_keys_of_submissions_are_each_tenants_own(ask: Ask, store: Database) -> None:
    one, other = (Client(ask, create_app(database=store), key) for key in make_keys(store, "one", "other"))
    keyed, line = LINES | {"idempotency-key": "k"}, jsonl(body(1))
    batches = [client("POST", "/v1/batches", line, keyed) for client in (one, other)]
    assert {answer.status for answer in batches} == {202}
    assert len({answer.json["id"] for answer in batches}) == 2


def test_without_a_store_nothing_is_kept_and_that_is_said(ask: Ask) -> None:
    client = Client(ask, create_app())
    assert client("POST", "/v1/score", body(1, store=True)).problem["errors"][0]["pointer"] == "/store"
    stateless = re.compile(r"/(livez|readyz|metrics|v1/(score|rubrics.*|overview|judges|usage))")
    for method, path in list_operations(client):
        if not stateless.fullmatch(path) and (method, path) not in BODIES:
            answer = client(method, re.sub(r"\{\w+\}", "0", path), b"", LINES if path in LINES_ROUTES else JSON)
            assert (answer.status, "database" in answer.problem["detail"]) == (503, True), (method, path)


# What judges said.


@pytest.fixture
def two_tenants(store: Database) -> tuple[Database, list[str]]:
    return store, make_keys(store, "a", "b")


async def scored(app: FastAPI, key: str, **more: Any) -> Answer:
    return await exchange(app, "POST", "/v1/score", request(1, **more), bearer(key))


def told(answer: Answer) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The answer without what differs between any two requests."""
    report = answer.json
    judged(report)["judge"].pop("latency_ms")
    return report, {name: value for name, value in answer.headers.items() if name != "x-request-id"}


async def disconnected(work: Awaitable[T]) -> T:
    """What `work` gives; the connections of its calls are closed in the loop that opened them."""
    try:
        return await work
    finally:
        await disconnect()


def test_a_tenant_pays_for_what_another_has_cached(
    provider: Provider, clock: Clock, two_tenants: tuple[Database, list[str]], tmp_path: Path
) -> None:
    database, (a, b) = two_tenants

    async def run() -> tuple[Answer, list[Answer]]:
        app = application(provider, clock, "good", cache=kept_in(tmp_path / "cache"), database=database)
        first = await scored(app, a)
        from_cache = await scored(app, b, judges="cached")
        return from_cache, [first, *[await scored(app, key) for key in (b, a, b)]]

    from_cache, answers = asyncio.run(disconnected(run()))
    primed, asked, *again = map(told, answers)
    assert judged(from_cache.json)["kind"] == "skipped"
    assert provider.counts == {"good": 2}
    assert asked == primed
    assert [judged(report)["judge"]["cache"] for report, _ in (primed, asked, *again)] == ["miss", "miss", "hit", "hit"]


def test_tenants_share_no_flight(
    provider: Provider, clock: Clock, two_tenants: tuple[Database, list[str]], tmp_path: Path
) -> None:
    database, (a, b) = two_tenants
    provider.latency = 0.2

    async def run() -> list[Answer]:
        app = application(provider, clock, "good", cache=kept_in(tmp_path / "cache"), database=database)
        return await asyncio.gather(*[scored(app, key) for key in (a, b) for _ in range(6)])

    answers = asyncio.run(disconnected(run()))
    assert provider.counts == {"good": 2}
    uses = [judged(answer.json)["judge"]["cache"] for answer in answers]
    assert (uses.count("miss"), uses.count("coalesced")) == (2, 10)

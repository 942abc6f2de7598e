"""Batches over HTTP, from submission to deletion. The worker is played."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from service import report_json, score
from service.api.app import create_app
from service.api.routes.batch_reading import MAX_SUMMARIZED_REPORTS
from service.asking.demo_judge import DemoJudge
from service.asking.judging import Judges, Judging
from service.core.judging.prompts import Prompt
from service.engine import Engine
from service.jobs.chunking import Cutter
from service.jobs.quotes import Quote, build_quote
from service.reading.strict_json import Limits
from service.registry import Registry
from service.settings import Settings
from service.store.database import Database
from service.store.tables import BATCHES, CHUNKS
from tests.api.asgi_caller import JSON, LINES, Ask, Client, build_scope, jsonl, list_pointers
from tests.faults.disk import fill, small
from tests.jobs.process import request as judged_body
from tests.replies import MemoryCache
from tests.store.played import ended, paused, ready, recorded
from tests.stores import open_new_store
from tests.tables import named

MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
TRACE = {"format": "openai", "messages": MESSAGES}
REPORT = json.loads(report_json(score({"trace": TRACE, "expected": {"calls": "none"}})))
SMALL = Settings(batch_chunk=1, batch_max_items=50, batch_max_bytes=20_000, max_body_bytes=2_000)


def item(**more: Any) -> dict[str, Any]:
    return {"trace": TRACE, **more}


FIVE = jsonl(*[item(custom_id=f"c{n}") for n in range(5)])


class Batching(Client):
    """Submits batches to one application."""

    def submit(self, body: bytes = FIVE, headers: Mapping[str, str] = LINES, **query: object) -> dict[str, Any]:
        answer = self("POST", "/v1/batches", body, headers, **query)
        assert answer.status == 202, answer.body
        assert answer.headers["location"] == f"/v1/batches/{answer.json['id']}"
        return answer.json

    def refused(self, status: int, body: bytes = FIVE, headers: Mapping[str, str] = LINES, **query: object) -> Any:
        answer = self("POST", "/v1/batches", body, headers, **query)
        assert answer.status == status, answer.body
        return answer.problem


@pytest.fixture
def client(ask: Ask, store: Database) -> Batching:
    return Batching(ask, create_app(SMALL, database=store))


def stored(store: Database) -> int:
    with store.read() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(BATCHES)).scalar_one()


# Submitting.


def test_a_batch_is_taken_and_can_be_found(client: Batching, store: Database) -> None:
    options = {"name": "n", "tags": "a:b,c:d:e", "deadline_hours": 2, "rubric": "arcade"}
    batch = client.submit(**options)
    counts = {"total": 5, "completed": 0, "failed": 0, "rejected": 0, "cancelled": 0, "expired": 0}
    assert (batch["name"], batch["status"], batch["request_counts"]) == ("n", "in_progress", counts)
    assert batch["tags"] == {"a": "b", "c": "d:e"}
    assert ready(store, batch["id"]) == [0, 4]
    assert client("GET", f"/v1/batches/{batch['id']}").json == batch
    listed = client("GET", "/v1/batches").json
    assert listed == {"data": [batch], "has_more": False, "next": None}


def test_bad_lines_are_all_named_and_left_out_only_where_that_is_asked_for(client: Batching, store: Database) -> None:
    found = client.refused(400, jsonl(item(custom_id="a"), {}, item(custom_id="a"), 1, item()) + b"{nope}\n")
    assert list_pointers(found) == ["/1/custom_id", "/2/trace", "/3/custom_id", "/4", "/6"]
    assert (found["detail"], stored(store)) == ("5 of the items cannot be taken", 0)
    batch = client.submit(jsonl(item(), {}, item(rubric="nope"), item()), skip_invalid="true")
    assert (batch["request_counts"]["total"], batch["request_counts"]["rejected"]) == (2, 2)
    assert [(one["line"], one["errors"][0]["pointer"]) for one in batch["rejected"]] == [(2, "/trace"), (3, "/rubric")]
    assert client("GET", f"/v1/batches/{batch['id']}").json == batch
    client.refused(400, jsonl({}), skip_invalid="true")


def test_a_full_disk_is_507_and_nothing_is_half_stored(ask: Ask, tmp_path: Path) -> None:
    with small(tmp_path / "disk"):
        store = open_new_store(tmp_path / "disk")
        client, filler = Batching(ask, create_app(SMALL, database=store)), tmp_path / "disk" / "filler"
        kept = client.submit()["id"]
        store.close()  # the log goes, and with it the room that it holds
        with filler.open("wb", buffering=0) as file:
            fill(file)
        once = {**LINES, "idempotency-key": "once"}
        for _ in range(2):
            assert "no room left on its disk" in client.refused(507, FIVE, once)["detail"]
        answer = client("POST", f"/v1/batches/{kept}/cancel")
        assert (answer.status, answer.headers["retry-after"]) == (507, "30")
        listed = client("GET", "/v1/batches").json["data"]
        assert [(one["id"], one["status"]) for one in listed] == [(kept, "in_progress")]
        filler.unlink()
        again = client.submit(FIVE, once)
        assert ready(store, again["id"]) == [0, 4]
        assert stored(store) == 2
        store.close()


PACKED = {**LINES, "content-encoding": "gzip"}
LARGE = jsonl(item(tags={"a": "x" * 1_000}))
REFUSED: list[tuple[str, int, bytes, Mapping[str, str], dict[str, object]]] = [
    ("no item", 400, b"", LINES, {}),
    ("another type", 415, FIVE, {"content-type": "text/csv"}, {}),
    ("one document", 415, FIVE, JSON, {}),
    ("another encoding", 415, FIVE, {**LINES, "content-encoding": "br"}, {}),
    ("truncated gzip", 400, gzip.compress(FIVE)[:-3], PACKED, {}),
    ("gzip that is not said to be", 400, gzip.compress(FIVE), LINES, {}),
    ("a bomb", 413, gzip.compress(bytes(10**7)), PACKED, {}),
    ("a body that is too large", 413, LARGE * 20, LINES, {}),
    ("a line that is too large", 400, jsonl(item(tags={"a": "x" * 2_000})), LINES, {}),
    ("too many items", 413, jsonl(*[item()] * 51), LINES, {}),
    ("an unknown parameter", 422, FIVE, LINES, {"skip_invaild": "true"}),
    ("a flag that is none", 422, FIVE, LINES, {"dry_run": "perhaps"}),
    ("tags that are none", 422, FIVE, LINES, {"tags": "a"}),
    ("a tag given twice", 422, FIVE, LINES, {"tags": "a:1,a:2"}),
    ("an infinite budget", 422, FIVE, LINES, {"budget_usd": "inf"}),
    ("a negative budget", 422, FIVE, LINES, {"budget_usd": "-1"}),
    ("half a question", 422, FIVE, LINES, {"max_questions": "0.5"}),
    ("an unknown rubric", 422, FIVE, LINES, {"rubric": "nope"}),
    ("judges where there is none", 422, FIVE, LINES, {"judges": "live"}),
    ("a webhook where there is none", 422, FIVE, LINES, {"webhook": "https://example.com/"}),
    ("an empty key", 422, FIVE, {**LINES, "idempotency-key": ""}, {}),
    ("a long key", 422, FIVE, {**LINES, "idempotency-key": "k" * 256}, {}),
    ("a key of other letters", 422, FIVE, {**LINES, "idempotency-key": "é"}, {}),
]


@pytest.mark.parametrize(("status", "body", "headers", "query"), named(REFUSED))
def test_what_cannot_be_taken_leaves_nothing(
    client: Batching, store: Database, status: int, body: bytes, headers: Mapping[str, str], query: dict[str, object]
) -> None:
    client.refused(status, body, headers, **query)
    assert stored(store) == 0


def test_a_webhook_is_admitted_by_the_settings(ask: Ask, store: Database) -> None:
    settings = Settings(webhook_hosts=("hooks.example",), webhook_secret="a secret")
    client = Batching(ask, create_app(settings, database=store))
    batch = client.submit(webhook="https://hooks.example/done")
    assert batch["webhook"] == {"url": "https://hooks.example/done", "status": None}
    assert list_pointers(client.refused(422, webhook="https://elsewhere.example/")) == ["/webhook"]


@pytest.mark.parametrize(("setting", "whose"), [("batch_max_queued", "in all"), ("tenant_max_queued", "of yours")])
def test_no_more_waits_than_may(ask: Ask, store: Database, setting: str, whose: str) -> None:
    client = Batching(ask, create_app(replace(Settings(), **{setting: 7}), database=store))
    keyed = {**LINES, "idempotency-key": "k"}
    batch = client.submit(headers=keyed)
    answer = client("POST", "/v1/batches", FIVE, LINES)
    assert (answer.status, answer.headers["retry-after"]) == (429, "30")
    assert f"10 items would wait {whose}" in answer.problem["detail"]
    assert client.submit(headers=keyed) == batch
    client.submit(jsonl(item(), item()))
    assert "8 items" in client.refused(429, b"not read at all")["detail"]
    assert client.submit(headers=keyed) == batch


# Dry runs.


def judging(price: float | None = 0.25) -> Engine:
    """An engine whose calls all cost the same."""

    async def priced(_: Prompt) -> float | None:
        return price

    return Engine(Registry(), judging=Judging(DemoJudge(), MemoryCache(), Judges("stand-in"), pricing=priced))


JUDGED = [judged_body(n) for n in range(4)]

QUOTES: list[tuple[str, float | None, dict[str, object], tuple[int, int, float | None]]] = [
    ("live", 0.25, {}, (4, 2, 0.5)),
    ("fresh", 0.25, {"judges": "fresh"}, (4, 0, 1.0)),
    ("cached", 0.25, {"judges": "cached"}, (4, 2, 0.0)),
    ("off", 0.25, {"judges": "off"}, (0, 0, 0.0)),
    ("without a price", None, {}, (4, 2, None)),
    ("without a price that is asked for", None, {"judges": "cached"}, (4, 2, 0.0)),
]


@pytest.mark.parametrize(("price", "options", "wanted"), named(QUOTES))
def test_a_dry_run_quotes_and_keeps_nothing(
    ask: Ask, store: Database, price: float | None, options: dict[str, object], wanted: tuple[int, int, float | None]
) -> None:
    client = Batching(ask, create_app(engine=judging(price), database=store))
    for one in JUDGED[:2]:
        assert client("POST", "/v1/score", one).status == 200
    answer = client("POST", "/v1/batches", jsonl(*JUDGED), LINES, dry_run="true", **options)
    questions, hits, cost = wanted
    quote = {"items": 4, "questions": questions, "cache_hits": hits, "cost_usd": cost, "sampled": 4}
    quote["unpriced_calls"] = questions - hits if cost is None else 0
    assert (answer.status, answer.json) == (200, quote)
    assert stored(store) == 0
    client.refused(400, jsonl({}), dry_run="true")


def test_of_many_items_some_are_looked_at() -> None:
    with Cutter(size=4) as cutter:
        for n in range(12):
            cutter.add(json.dumps({"custom_id": str(n), "request": judged_body(n)}).encode())
        cutter.finish()
        quotes = [asyncio.run(build_quote(judging(), cutter, limits=Limits(), tenant="", most=3)) for _ in range(2)]
    assert quotes == [Quote(items=12, questions=12, cache_hits=0, cost_usd=3.0, sampled=3)] * 2


# Keys of submissions.


def test_a_key_stands_for_body_and_options(client: Batching, store: Database) -> None:
    keyed = {**LINES, "idempotency-key": "k"}
    batch = client.submit(headers=keyed, name="a")
    assert client.submit(gzip.compress(FIVE), {**keyed, "content-encoding": "gzip"}, name="a") == batch
    client.refused(422, FIVE + b"\n", keyed, name="a")
    client.refused(422, FIVE, keyed, name="b")
    client.refused(422, FIVE, keyed)
    recorded(store, batch["id"], range(5))
    assert client.submit(headers=keyed, name="a")["request_counts"]["completed"] == 5
    ended(store, batch["id"])
    client("DELETE", f"/v1/batches/{batch['id']}")
    assert "deleted" in client.refused(410, FIVE, keyed, name="a")["detail"]


# Looking on.


def test_results_are_the_same_bytes_while_it_runs_and_afterwards(client: Batching, store: Database) -> None:
    batch = client.submit()["id"]
    path = f"/v1/batches/{batch}"
    recorded(store, batch, [4])
    assert client("GET", f"{path}/results", offset=0).body == b""
    recorded(store, batch, [0, 2])
    recorded(store, batch, [1], ok=False)
    early = client("GET", f"{path}/results", offset=0)
    assert early.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["index"] for line in early.body.splitlines()] == [0, 2]
    assert (early.headers["x-callgrade-next-offset"], early.headers["x-callgrade-complete"]) == ("3", "false")
    assert [json.loads(line)["index"] for line in client("GET", f"{path}/errors").body.splitlines()] == [1]
    done = client("GET", f"{path}/results")
    assert [json.loads(line)["index"] for line in done.body.splitlines()] == [0, 2, 4]
    assert (done.headers["x-callgrade-next-offset"], done.headers["x-callgrade-unfinished"]) == ("3", "1")
    recorded(store, batch, [3])
    assert client("GET", f"{path}/results").headers["x-callgrade-complete"] == "false"
    ended(store, batch)
    rest = client("GET", f"{path}/results", offset=3)
    whole = client("GET", f"{path}/results")
    assert early.body + rest.body == whole.body
    assert whole.headers["x-callgrade-unfinished"] == "0"
    assert client("GET", f"{path}/results", limit=3).body == early.body
    assert (rest.headers["x-callgrade-next-offset"], rest.headers["x-callgrade-complete"]) == ("5", "true")
    assert [json.loads(line)["index"] for line in whole.body.splitlines()] == [0, 2, 3, 4]
    for bad in ({"offset": -1}, {"limit": 0}, {"offset": "1.5"}):
        assert client("GET", f"{path}/results", **bad).status == 422


def test_a_paused_batch_goes_on(client: Batching, store: Database) -> None:
    batch = client.submit(budget_usd=0.5)["id"]
    path = f"/v1/batches/{batch}"
    assert client("POST", f"{path}/resume").status == 409
    recorded(store, batch, [0])
    paused(store, batch, "paused_budget")
    found = client("GET", path).json
    assert (found["status"], found["reason"], found["cost_usd"]) == ("paused_budget", "because", 0.25)
    for body, status in ((b'{"budget_usd":0.2}', 422), (b'{"budget_usd":-1}', 422), (b"{", 400), (b'{"x":1}', 422)):
        assert client("POST", f"{path}/resume", body).status == status
    resumed = client("POST", f"{path}/resume", b'{"budget_usd":2.5}').json
    assert (resumed["status"], resumed["budget_usd"]) == ("in_progress", 2.5)
    assert 0 in ready(store, batch)


def test_the_reports_so_far_are_summed_up(client: Batching, store: Database) -> None:
    batch = client.submit()["id"]
    path = f"/v1/batches/{batch}/summary"
    assert client("GET", path).status == 409
    recorded(store, batch, [0, 1], report=REPORT)
    found = client("GET", path, by="suite,step", assertions='["pass_rate >= 0.95"]').json
    assert (found["gate"]["undecided"], found["unfinished"], found["rubrics"][0]["id"]) == (True, 3, "four_step")
    for bad in ("nope", '["nope > 1"]', "{}"):
        assert client("GET", path, assertions=bad).status == 422


def test_labels_correct_the_rates_of_a_batch(client: Batching, store: Database) -> None:
    batch = client.submit()["id"]
    path = f"/v1/batches/{batch}/summary"
    named = {f"t{n}": {**REPORT, "trace_id": f"t{n}"} for n in range(3)}
    for position, one in enumerate(named.values()):
        recorded(store, batch, [position], report=one)
    labels = [{"trace_id": name, "criterion": "call_decision", "label": "pass"} for name in ("t0", "elsewhere")]
    [found] = client("GET", path, labels=json.dumps(labels)).json["corrected"]
    assert (found["criterion"], found["labelled"] + found["unmatched"], found["humans"]) == ("call_decision", 2, None)
    assert client("GET", path, labels="[{}]").status == client("GET", path, labels="nope").status == 422


def test_more_reports_than_memory_is_for_are_not_summed_up(client: Batching, store: Database) -> None:
    batch = client.submit()["id"]
    with store.begin() as connection:
        connection.execute(CHUNKS.update().where(CHUNKS.c.batch == batch).values(completed=MAX_SUMMARIZED_REPORTS))
    answer = client("GET", f"/v1/batches/{batch}/summary")
    assert answer.status == 422
    assert "callgrade summarize" in answer.problem["detail"]


# Watching.


class Watch:
    """One stream of events, read as it comes."""

    def __init__(self, app: FastAPI, path: str, headers: Mapping[str, str] | None = None) -> None:
        self.parts: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.left = asyncio.Event()
        self._asked = False
        scope = build_scope("GET", path, headers)
        self.task = asyncio.create_task(self._run(app, scope))
        self.status = 0

    async def _run(self, app: FastAPI, scope: dict[str, Any]) -> None:
        await app(scope, self._receive, self._send)
        await self.parts.put(None)

    async def _receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        if message.get("body"):
            await self.parts.put(message["body"])

    async def event(self) -> dict[str, str] | None:
        """The next event; None at the end."""
        while (part := await self.parts.get()) is not None:
            fields = dict(line.split(": ", 1) for line in part.decode().strip().splitlines() if ": " in line)
            if "event" in fields:
                return fields
        return None


def test_whoever_watches_is_told_of_each_change_until_the_end(client: Batching, store: Database) -> None:
    batch = client.submit()["id"]

    async def watched() -> None:
        watch = Watch(client.app, f"/v1/batches/{batch}/events")
        first = await watch.event()
        assert first is not None
        assert (first["event"], json.loads(first["data"])["request_counts"]["completed"]) == ("batch", 0)
        await asyncio.to_thread(recorded, store, batch, range(5))
        seen = 0
        while seen < 5:
            told = await watch.event()
            assert told is not None
            assert told["id"] != first["id"]
            seen = json.loads(told["data"])["request_counts"]["completed"]
        await asyncio.to_thread(ended, store, batch)
        last = await watch.event()
        assert last is not None
        assert json.loads(last["data"])["status"] == "completed"
        assert await watch.event() is None
        await watch.task
        again = Watch(client.app, f"/v1/batches/{batch}/events", {"last-event-id": last["id"]})
        assert await again.event() == last
        assert await again.event() is None

    asyncio.run(watched())

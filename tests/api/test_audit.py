"""The audit log over HTTP: who reads it, what it tells of requests, and when a key was used."""

from __future__ import annotations

from pathlib import Path

import jsonschema_rs
import pytest
from fastapi import FastAPI

from service.api.app import create_app
from service.settings import Settings
from service.store.access.audit import Actor, Audit
from service.store.access.keys import Keys
from service.store.database import Database
from service.store.jobs.jobs import Batches
from tests.api.asgi_caller import Answer, Ask, bearer
from tests.jobs.process import until
from tests.store.test_store_batches import chunks, submission


@pytest.fixture
def audited(store: Database, tmp_path: Path) -> FastAPI:
    return create_app(Settings(home=tmp_path), database=store)


def entries(ask: Ask, app: FastAPI, key: str, query: bytes = b"") -> Answer:
    return ask("GET", "/v1/audit", app=app, headers=bearer(key), query=query)


def test_an_act_is_told_with_its_key_and_address(ask: Ask, audited: FastAPI, store: Database) -> None:
    admin, text = Keys(store).create(name="admin", scopes=["admin"], by=Actor("user ann", "here"))
    key, other = Keys(store).create(name="ci", tenant="t", by=Actor("user ann", "here"))
    batch = Batches(store).submit(submission(name="nightly"), chunks(1)).id
    assert ask("POST", f"/v1/batches/{batch}/cancel", app=audited, headers=bearer(other)).status == 200
    answer = entries(ask, audited, text)
    cancelled, second, first = answer.json["data"]
    assert {name: cancelled[name] for name in ("who", "origin", "act", "tenant", "target", "detail")} == {
        "who": f"key {key.id}",
        "origin": "127.0.0.1",
        "act": "batch.cancel",
        "tenant": "t",
        "target": batch,
        "detail": {"name": "nightly", "status": "in_progress"},
    }
    assert [(one["act"], one["target"], one["who"]) for one in (first, second)] == [
        ("key.create", admin.id, "user ann"),
        ("key.create", key.id, "user ann"),
    ]
    assert not [secret for secret in (text, other) if secret[-43:] in answer.body.decode()]
    document = ask("GET", "/openapi.json", app=audited, headers=bearer(text)).json
    schema = document["paths"]["/v1/audit"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    fits = jsonschema_rs.Draft202012Validator({**schema, "components": document["components"]})
    assert fits.is_valid(answer.json)


def test_where_no_key_is_asked_for_nobody_did_it(ask: Ask, audited: FastAPI, store: Database) -> None:
    batch = Batches(store).submit(submission(tenant=""), chunks(1)).id
    assert ask("POST", f"/v1/batches/{batch}/cancel", app=audited).status == 200
    (entry,) = Audit(store).page(limit=9).data
    assert (entry.who, entry.tenant) == ("nobody", "")


def test_it_is_read_in_pages_and_by_act(ask: Ask, audited: FastAPI, store: Database) -> None:
    keys = Keys(store)
    text = keys.create(name="admin", scopes=["admin"])[1]
    for number in range(3):
        keys.revoke(keys.create(name=f"{number}")[0].id)
    first = entries(ask, audited, text, b"limit=2&act=key.revoke").json
    second = entries(ask, audited, text, f"limit=2&act=key.revoke&after={first['next']}".encode()).json
    assert [len(page["data"]) for page in (first, second)] == [2, 1]
    assert [(page["has_more"], page["next"] is None) for page in (first, second)] == [(True, False), (False, True)]


@pytest.mark.parametrize("query", [b"limit=0", b"limit=1001", b"after=x", b"act=key.steal", b"tenant=a"])
def test_what_cannot_be_asked_is_refused_by_name(ask: Ask, audited: FastAPI, query: bytes) -> None:
    answer = ask("GET", "/v1/audit", app=audited, query=query)
    assert answer.status == 422
    assert answer.problem["errors"][0]["pointer"] == "/" + query.decode().split("=")[0]


def test_a_request_leaves_when_its_key_was_used(ask: Ask, audited: FastAPI, store: Database) -> None:
    used, unused = (Keys(store).create(name=name, scopes=["metrics"]) for name in ("used", "unused"))
    assert ask("GET", "/metrics", app=audited, headers=bearer(used[1])).status == 200
    until(lambda: Keys(store).list_keys()[0].used_at is not None)  # it is written in a thread
    assert [key.used_at is not None for key in Keys(store).list_keys()] == [True, False]
    assert Keys(store).list_keys()[1].id == unused[0].id

"""How much of one tenant may wait: what is over it is refused, and no other tenant notices."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from service.api.app import create_app
from service.settings import Settings
from service.store.access.keys import Keys
from service.store.database import Database
from tests.api.asgi_caller import Answer, Ask
from tests.store.played import recorded

LINES = {"content-type": "application/x-ndjson"}
TRACE = {
    "format": "openai",
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
}

Tenants = Callable[..., dict[str, "Tenant"]]


class Tenant:
    """Whoever has a key of one tenant, at one application."""

    def __init__(self, ask: Ask, app: Any, key: str) -> None:
        self._ask = ask
        self._app = app
        self._headers = {**LINES, "authorization": f"Bearer {key}"}

    def post(self, items: int, **headers: str) -> Answer:
        """The answer to a batch of so many items."""
        body = b"".join(json.dumps({"trace": TRACE}).encode() + b"\n" for _ in range(items))
        return self._ask("POST", "/v1/batches", body, app=self._app, headers=self._headers | headers)

    def submit(self, items: int, **headers: str) -> str:
        """The id of such a batch, which is taken."""
        answer = self.post(items, **headers)
        assert answer.status == 202, answer.body
        return answer.json["id"]

    def refused(self, items: int) -> str:
        """What is said of such a batch, which is not taken, though it may be later."""
        answer = self.post(items)
        assert (answer.status, answer.headers["retry-after"]) == (429, "30"), answer.body
        return answer.problem["detail"]

    def all(self) -> list[str]:
        """The ids of the tenant's batches."""
        answer = self._ask("GET", "/v1/batches", app=self._app, headers=self._headers)
        return [batch["id"] for batch in answer.json["data"]]

    def cancel(self, batch: str) -> None:
        answer = self._ask("POST", f"/v1/batches/{batch}/cancel", app=self._app, headers=self._headers)
        assert answer.status == 200


@pytest.fixture
def tenants(ask: Ask, store: Database) -> Tenants:
    """Two tenants of an application with these variables; of the first another key too."""
    keys = [
        (name, Keys(store).create(name=name, tenant=tenant, scopes=["batch"])[1])
        for name, tenant in (("one", "one"), ("another key", "one"), ("other", "other"))
    ]

    def made(**variables: int) -> dict[str, Tenant]:
        environ = {f"CALLGRADE_{name.upper()}": str(value) for name, value in variables.items()}
        app = create_app(Settings.from_env(environ), database=store)
        return {name: Tenant(ask, app, key) for name, key in keys}

    return made


def test_a_tenant_whose_items_wait_is_refused_and_another_is_not(tenants: Tenants) -> None:
    by = tenants(tenant_max_queued=5)
    batch = by["one"].submit(3)
    assert by["one"].refused(3) == "6 items would wait of yours; at most 5 may"
    assert by["another key"].refused(3) == "6 items would wait of yours; at most 5 may"
    assert len(by["other"].all()) == 0
    other = by["other"].submit(5)
    assert by["other"].refused(1) == "6 items would wait of yours; at most 5 may"
    assert (by["one"].all(), by["other"].all()) == ([batch], [other])
    by["another key"].submit(2)  # as many as there is room for


def test_what_is_submitted_again_under_its_key_is_found_however_much_waits(tenants: Tenants) -> None:
    by = tenants(tenant_max_queued=5)
    batch = by["one"].submit(5, **{"idempotency-key": "k"})
    assert by["one"].submit(5, **{"idempotency-key": "k"}) == batch
    by["one"].refused(5)


def test_the_bound_of_a_tenant_and_that_of_all_hold_together(tenants: Tenants) -> None:
    by = tenants(tenant_max_queued=5, batch_max_queued=7)
    by["one"].submit(5)
    assert by["other"].refused(3) == "8 items would wait in all; at most 7 may"
    by["other"].submit(2)


@pytest.mark.parametrize("ending", ["recorded", "cancelled"])
def test_what_waits_no_more_makes_room(tenants: Tenants, store: Database, ending: str) -> None:
    by = tenants(tenant_max_queued=5)
    batch = by["one"].submit(5)
    by["one"].refused(2)
    if ending == "recorded":
        recorded(store, batch, range(2))
    else:
        by["one"].cancel(batch)
    by["one"].submit(2)

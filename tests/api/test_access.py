"""Who comes in: every route and method with every kind of key, what is limited, and what tenants see of each other."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.api.app import create_app
from service.settings import Settings
from service.store.access.keys import Keys
from service.store.database import Database
from service.store.tables import KEYS
from service.wiring import build_database
from tests.api.asgi_caller import JSON, Ask, bearer
from tests.api.test_server import GOOD, Server, serving
from tests.bulk import share
from tests.stores import open_new_store

PUBLIC = {(method, path) for method in ("GET", "HEAD") for path in ("/livez", "/readyz", "/docs")}
"""All that is answered without a key."""

SCOPES = {
    "/v1/score": "score",
    "/v1/usage": "",
    "/v1/overview": "",
    "/v1/rubrics": "score",
    "/v1/batches": "batch",
    "/v1/calibrations": "calibrate",
    "/v1/fits": "calibrate",
    "/v1/judges": "calibrate",
    "/v1/labels": "label",
    "/v1/scores": "score",
    "/v1/audit": "admin",
    "/metrics": "metrics",
    "/livez": "admin",  # with a method that it has not
    "/readyz": "admin",
    "/docs": "admin",
    "/openapi.json": "",
}
"""The scope for a route by how its path begins; "" where any key will do."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY")

NOWHERE = (
    "/", "/v1", "/v1/score/", "/v1/scoring", "//v1/score", "/v1/%73core", "/V1/score", "/livez/", "/docs/x", "/none",
)  # fmt: skip


def store(folder: Path) -> Database:
    """The store of a home folder, which is up to date from the first."""
    if not (folder / "store.db").exists():
        folder.mkdir(exist_ok=True)
        return open_new_store(folder)
    return build_database(Settings(home=folder))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def keys(home: Path) -> dict[str, str]:
    """Keys by what they are: one for each scope, and such as are worth nothing."""
    held = Keys(store(home))
    made = {
        scope: held.create(name=scope, tenant="acme", scopes=[scope])[1]
        for scope in ("score", "batch", "label", "metrics", "admin")
    }
    made["calibrate"] = held.create(name="other", scopes=["calibrate"])[1]
    revoked, made["revoked"] = held.create(name="revoked", scopes=["admin"])
    held.revoke(revoked.id)
    expired, made["expired"] = held.create(name="expired", scopes=["admin"], lasts_s=86_400.0)
    with store(home).begin() as connection:
        connection.execute(KEYS.update().where(KEYS.c.id == expired.id).values(expires_at=1.0))
    return made


@pytest.fixture(scope="module")
def guarded(home: Path, keys: dict[str, str]) -> FastAPI:
    return create_app(Settings(home=home), database=store(home))


def from_anywhere(app: FastAPI) -> Any:
    """The application, each request from an address of its own."""
    count = itertools.count()

    async def one(scope: Scope, receive: Receive, send: Send) -> None:
        number = next(count)
        await app(
            {**scope, "client": (f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 1)}, receive, send
        )

    return one


def paths(app: FastAPI) -> list[str]:
    """The template of every route."""
    return sorted({getattr(route, "path", "") for route in app.routes})


def filled(template: str) -> str:
    return re.sub(r"\{[^}]*\}", "four_step", template)


BAD: dict[str, Callable[[dict[str, str]], dict[str, str]]] = {
    "none": lambda _: {},
    "empty": lambda _: {"authorization": "Bearer "},
    "empty in its own header": lambda _: {"x-api-key": ""},
    "no scheme": lambda keys: {"authorization": keys["admin"]},
    "another scheme": lambda keys: {"authorization": f"Basic {keys['admin']}"},
    "malformed": lambda _: {"authorization": "Bearer cg_x"},
    "not ASCII": lambda keys: {"authorization": f"Bearer {keys['admin'][:-1]}\xe9"},
    "a wrong secret": lambda keys: {"authorization": f"Bearer {keys['admin'][:-3]}AAA"},
    "another's secret": lambda keys: {"authorization": f"Bearer {keys['admin'][:-43]}{keys['score'][-43:]}"},
    "an unknown id": lambda keys: {"authorization": f"Bearer cg_{'0' * 12}_{keys['admin'][-43:]}"},
    "expired": lambda keys: {"authorization": f"Bearer {keys['expired']}"},
    "revoked": lambda keys: {"x-api-key": keys["revoked"]},
    "two that differ": lambda keys: {"authorization": f"Bearer {keys['admin']}", "x-api-key": keys["score"]},
    "in a cookie": lambda keys: {"cookie": f"key={keys['admin']}"},
}


@pytest.mark.whole
@pytest.mark.parametrize("kind", BAD)
def test_without_a_good_key_only_the_public_list_is_answered(
    ask: Ask, guarded: FastAPI, keys: dict[str, str], kind: str
) -> None:
    """Without any key, every route by every method; with what is as good as none, a share of them."""
    app, headers = from_anywhere(guarded), JSON | BAD[kind](keys)
    answered, bodies = set[tuple[str, str]](), set[bytes]()
    asked = [*itertools.product([*map(filled, paths(guarded)), *NOWHERE], METHODS)]
    tried = asked if kind == "none" else share(asked, one_in=7)
    for path, method in tried:
        answer = ask(method, path, GOOD if method == "POST" else b"", app=app, headers=headers)
        if answer.status != 401:
            answered.add((method, path))
            continue
        assert answer.headers["www-authenticate"].startswith("Bearer")
        bodies |= {answer.body} - {b""}
    assert answered == {(method, path) for path, method in tried} & PUBLIC
    assert len(bodies) == 1


def test_a_key_in_the_query_is_none(ask: Ask, guarded: FastAPI, keys: dict[str, str]) -> None:
    for name in ("key", "api_key", "access_token", "authorization", "x-api-key"):
        assert ask("GET", "/v1/rubrics", app=guarded, query=f"{name}={keys['admin']}".encode()).status == 401


@pytest.mark.parametrize("scope", ["score", "batch", "calibrate", "label", "metrics", "admin"])
def test_a_key_opens_what_its_scope_is_for(ask: Ask, guarded: FastAPI, keys: dict[str, str], scope: str) -> None:
    for path, method in itertools.product(paths(guarded), METHODS):
        start = next((start for start in SCOPES if path == start or path.startswith(f"{start}/")), None)
        assert start is not None, f"{path}: say here which scope it needs"
        answer = ask(method, filled(path), app=guarded, headers=bearer(keys[scope]))
        needed = "admin" if start == "/v1/fits" and method not in ("GET", "HEAD") else SCOPES[start]
        opened = (method, path) in PUBLIC or scope == "admin" or needed in ("", scope)
        assert (answer.status == 403) is not opened, (method, path)
        assert answer.status not in (401, 429)
        if answer.status == 403 and method != "HEAD":
            assert answer.problem["detail"] == f"the key lacks the scope {needed}"


def test_a_route_that_nobody_thought_of_needs_admin(ask: Ask, home: Path, keys: dict[str, str]) -> None:
    app = create_app(Settings(home=home), database=store(home))
    app.add_route("/v1/scoring", lambda _: Response("hello"))
    app.add_api_route("/v2/score", lambda: "hello")
    for path in ("/v1/scoring", "/v2/score"):
        statuses = [ask("GET", path, app=app, headers=bearer(keys[key])).status for key in ("score", "batch", "admin")]
        assert (ask("GET", path, app=app).status, statuses) == (401, [403, 403, 200])


def test_a_socket_of_another_kind_is_closed(guarded: FastAPI) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/livez", "headers": [], "query_string": b"", "subprotocols": []}
    asyncio.run(guarded(scope, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]


# Without keys.


def test_without_a_store_or_a_key_everything_is_open(ask: Ask, tmp_path: Path) -> None:
    for app in (create_app(), create_app(Settings(home=tmp_path), database=store(tmp_path))):
        assert ask("POST", "/v1/score", GOOD, app=app).status == 200
        assert ask("GET", "/metrics", app=app, headers=bearer("cg_any")).status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])  # noqa: S104 (nothing listens)
def test_where_others_reach_it_nothing_is_open_without_a_key(ask: Ask, tmp_path: Path, host: str) -> None:
    app = create_app(Settings(home=tmp_path, host=host), database=store(tmp_path))
    assert ask("POST", "/v1/score", GOOD, app=app).status == 401
    assert ask("GET", "/livez", app=app).status == 200


def test_a_store_that_is_away_lets_nobody_in(ask: Ask, tmp_path: Path) -> None:
    from service.store.database import open_database

    away = open_database("postgresql+psycopg://nobody@127.0.0.1:9/none")
    app = create_app(Settings(home=tmp_path, host="0.0.0.0"), database=away)  # noqa: S104 (nothing listens)
    answer = ask("GET", "/v1/rubrics", app=app, headers=bearer(f"cg_{'a' * 12}_{'b' * 43}"))
    assert (answer.problem["status"], answer.headers["retry-after"]) == (503, "1")
    assert ask("GET", "/livez", app=app).status == 200


# Over a socket, where the server reads the request line.


@pytest.fixture(scope="module")
def server(home: Path, keys: dict[str, str]) -> Iterator[Server]:
    with serving(home) as running:
        yield running


TARGETS = [
    "/v1/score", "//v1/score", "/v1/%73core", "/v1%2fscore", "/v1/score;a", "/v1/./score", "/livez/../v1/score",
    "/livez/%2e%2e/v1/score", "/livez%2f..%2fv1%2fscore", "/livez%3f/../v1/score", "/livez%00", "/livez%20", "/LIVEZ",
    "//livez", "/readyz#/livez", "/metrics?/livez", "http://localhost/v1/score", "http://localhost/metrics?/livez",
    "http://livez/v1/rubrics", "*", "livez",
]  # fmt: skip
HOSTS = ["localhost", "/livez", "localhost/livez?", "localhost#/livez", "x@/livez", "", "livez\thost"]


SPELLINGS = [(target, "localhost") for target in TARGETS] + [("/v1/score", host) for host in HOSTS]


@pytest.mark.parametrize(("target", "host"), SPELLINGS)
def test_no_spelling_of_a_target_leads_past_the_door(server: Server, target: str, host: str) -> None:
    for method in ("GET", "POST"):
        connection = server.connect()
        connection.send(f"{method} {target} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n".encode())
        assert connection.answer()[0] in (400, 401), method
        connection.close()


def test_a_spelling_of_a_path_is_that_path_with_a_key(server: Server, keys: dict[str, str]) -> None:
    for target in ("/v1/score", "/v1/%73core"):
        for key, status in (("score", 200), ("batch", 403), ("revoked", 401)):
            headers = [f"authorization: Bearer {keys[key]}", "connection: close"]
            assert server.ask("POST", target, GOOD, *headers)[0] == status
    assert server.ask("GET", "/livez")[0] == 200

"""Every route: what it answers to requests that are right, wrong, too many or none of its own."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request

from service.api.app import create_app
from service.api.body import read_body, receive
from service.api.contract import JsonRoute
from service.core.report import Report
from service.engine import Engine, build_default_engine, report_json
from service.jobs.spool import Spool
from service.reading.request import ScoreRequest
from service.reading.strict_json import Limits
from service.registry import Registry
from service.settings import Settings
from tests.api.asgi_caller import JSON, Ask, build_scope, exchange, list_pointers
from tests.tables import DATA, read_yaml

TABLES = read_yaml(DATA / "api" / "routes.yaml")

DATA = Path(__file__).parents[1] / "data" / "api"
CASES = json.loads((DATA / "requests.json").read_text("utf-8"))
GOOD: dict[str, Any] = CASES[1]["request"]
BAD: dict[str, Any] = {"trace": {"format": "openai", "messages": [{"role": "robot"}]}}


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_score_gives_the_bytes_that_the_library_gives(ask: Ask, case: dict[str, Any]) -> None:
    answer = ask("POST", "/v1/score", encoded(case["request"]))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.body == report_json(build_default_engine().score(case["request"]))


MISFITS = [
    (b"{}", 422, "/trace"),
    (encoded(BAD), 422, "/trace/messages/0/role"),
    (encoded(GOOD | {"extra": 1}), 422, "/extra"),
    (encoded(GOOD | {"rubric": "nobody"}), 422, "/rubric"),
    (encoded(GOOD | {"rubric": {"id": "own", "criteria": []}}), 422, "/rubric/criteria"),
    (encoded(GOOD | {"expected": {}}), 422, "/expected"),
    (encoded(GOOD | {"expected": {"calls": [{"tool": "f", "args": {"a": {"kind": "nope"}}}]}}), 422,
     "/expected/calls/0/args/a"),
    (encoded(GOOD | {"judges": "live"}), 422, "/judges"),
    (encoded(GOOD | {"tags": {"a": 1}}), 422, "/tags/a"),
    (encoded({"trace": {"format": "openai", "messages": [], "tools": [1]}}), 422, "/trace/tools/0"),
    (encoded(GOOD | {"expected": {"format": "tau", "actions": [{"name": "", "kwargs": {}}]}}), 422,
     "/expected/actions/0/name"),
    (b'{"trace": ', 400, ""),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "pointer"), MISFITS)
def test_a_misfit_is_named_by_its_place(ask: Ask, body: bytes, status: int, pointer: str) -> None:
    answer = ask("POST", "/v1/score", body)
    assert answer.status == status
    assert pointer in list_pointers(answer.problem)


def test_every_route_refuses_a_parameter_that_it_does_not_declare(ask: Ask, app: FastAPI) -> None:
    routes = [one for one in app.routes if isinstance(one, JsonRoute)]
    assert {"/v1/score", "/v1/usage", "/v1/batches", "/livez"} <= {one.path for one in routes}
    for route in routes:
        [method] = route.methods
        unknown = {"pointer": "/judgs", "detail": "no parameter of that name is known here (in the query)"}
        answer = ask(method, route.path, encoded(GOOD), query=b"judgs=off")
        assert answer.status == 422, route.path
        assert unknown in answer.problem["errors"], route.path


@pytest.mark.parametrize(("method", "path", "status", "allow"), TABLES["astray"])
def test_what_is_no_route_is_a_problem(ask: Ask, method: str, path: str, status: int, allow: str | None) -> None:
    answer = ask(method, path, b"{}")
    assert (answer.status, answer.headers.get("allow")) == (status, allow)
    assert answer.headers["content-type"] == "application/problem+json"
    assert method == "HEAD" or answer.problem["status"] == status


@pytest.mark.parametrize(
    "path", ["/livez", "/readyz", "/metrics", "/v1/rubrics", "/v1/rubrics/four_step", "/openapi.json", "/docs"]
)
def test_head_gives_the_headers_of_get_alone(ask: Ask, path: str) -> None:
    got, head = ask("GET", path), ask("HEAD", path)
    assert (head.status, head.body) == (got.status, b"") == (200, b"")
    assert head.headers["content-type"] == got.headers["content-type"]


@pytest.mark.parametrize(("headers", "status"), TABLES["media"])
def test_only_plain_json_is_read(ask: Ask, headers: dict[str, str], status: int) -> None:
    answer = ask("POST", "/v1/score", encoded(GOOD), headers=headers)
    assert answer.status == status
    assert status == 200 or answer.problem["status"] == 415


@pytest.mark.parametrize(("declared", "status"), TABLES["lengths"])
def test_a_length_that_is_too_much_is_refused_before_the_body_comes(ask: Ask, declared: str, status: int) -> None:
    app = create_app(Settings(max_body_bytes=2_000))
    headers = JSON | {"content-length": declared}
    assert ask("POST", "/v1/score", encoded(GOOD), headers=headers, app=app).status == status


def in_parts(body: bytes, size: int) -> Callable[[], Awaitable[tuple[bytes, bool]]]:
    """A body as it comes in parts; it fails if more is asked for than there is."""
    parts = iter([(body[n : n + size], n + size < len(body)) for n in range(0, len(body), size)])

    async def chunks() -> tuple[bytes, bool]:
        return next(parts)

    return chunks


@pytest.mark.parametrize(("spare", "status"), [(0, 200), (-1, 413)])
@pytest.mark.parametrize("size", [1, 100, 10_000])
def test_a_body_is_bounded_to_the_byte_however_it_comes(size: int, spare: int, status: int) -> None:
    body = encoded(GOOD) + b" " * 2_000
    app = create_app(Settings(max_body_bytes=len(body) + spare))
    assert asyncio.run(exchange(app, "POST", "/v1/score", in_parts(body, size))).status == status


CLOSES = {"connection": "close", "transfer-encoding": "chunked"}
READ = [
    ("the connection stays, and the server reads on", {}, 21),
    ("the connection ends", CLOSES, 200),
    ("its length is known", {"content-length": "200000"}, 0),
    ("the client waits to be told to send", CLOSES | {"expect": "100-continue"}, 21),
]


@pytest.mark.parametrize(("headers", "parts"), [pytest.param(*row, id=name) for name, *row in READ])
def test_too_large_a_body_is_answered_at_once_and_read_on_where_the_answer_would_be_lost(
    headers: dict[str, str], parts: int
) -> None:
    app = create_app(Settings(max_body_bytes=20_000))
    asked = 0
    give = in_parts(b" " * 200_000, 1_000)

    async def chunks() -> tuple[bytes, bool]:
        nonlocal asked
        asked += 1
        return await give()

    assert asyncio.run(exchange(app, "POST", "/v1/score", chunks, JSON | headers)).status == 413
    assert asked == parts


@pytest.mark.parametrize("into", ["memory", "a file"])
@pytest.mark.parametrize("begun", [False, True])
def test_a_body_that_does_not_come_is_not_waited_for_for_ever(into: str, begun: bool) -> None:
    parts = [{"type": "http.request", "body": b"{", "more_body": True}] if begun else []

    async def come() -> Any:
        return parts.pop() if parts else await asyncio.Event().wait()

    async def read() -> None:
        request = Request({"type": "http", "method": "POST", "path": "/", "headers": []}, come)
        if into == "memory":
            await read_body(request, Limits(), patience=0.01)
        with Spool(max_bytes=100) as spool:
            await receive(request, spool, patience=0.01)

    with pytest.raises(HTTPException) as caught:
        asyncio.run(read())
    assert caught.value.status_code == 408


@pytest.mark.parametrize(("given", "kept"), TABLES["ids"])
def test_the_request_id_is_the_callers_where_it_is_fit(ask: Ask, given: str, kept: bool) -> None:
    found = ask("GET", "/livez", headers={"x-request-id": given}).headers["x-request-id"]
    assert (found == given) is kept
    assert kept or re.fullmatch(r"[0-9a-f]{32}", found)


class Breaking(Engine):
    """An engine that fails as nobody foresaw, or for want of room."""

    def __init__(self, error: Exception) -> None:
        super().__init__(Registry())
        self.error = error

    def answer(self, request: ScoreRequest) -> Report:  # noqa: ARG002
        raise self.error


def test_what_nobody_foresaw_is_a_500_that_tells_nothing(ask: Ask) -> None:
    app = create_app(engine=Breaking(RuntimeError("the secret sauce")))
    answer = ask("POST", "/v1/score", encoded(GOOD), app=app, headers=JSON | {"x-request-id": "mine"})
    assert answer.status == 500
    assert answer.problem["title"] == "Internal error"
    assert b"secret" not in answer.body
    assert b"RuntimeError" not in answer.body
    assert answer.headers["x-request-id"] == "mine"


def test_one_request_too_many_is_told_to_try_again() -> None:
    app = create_app(Settings(max_concurrency=1))

    async def scenario() -> None:
        started, go = asyncio.Event(), asyncio.Event()

        async def slow() -> tuple[bytes, bool]:
            started.set()
            await go.wait()
            return encoded(GOOD), False

        first = asyncio.create_task(exchange(app, "POST", "/v1/score", slow))
        await started.wait()
        refused = await exchange(app, "POST", "/v1/score", GOOD)
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert refused.problem["title"] == "Too many requests"
        other = await exchange(app, "POST", "/v1/score", GOOD, client="127.0.0.2")
        assert (other.status, other.headers["retry-after"]) == (503, "1")
        for path in ("/livez", "/readyz", "/metrics"):
            assert (await exchange(app, "GET", path)).status == 200
        go.set()
        assert (await first).status == 200
        assert (await exchange(app, "POST", "/v1/score", GOOD)).status == 200

    asyncio.run(scenario())


def test_a_caller_who_leaves_gives_its_place_back(ask: Ask) -> None:
    app = create_app(Settings(max_concurrency=1))

    async def leave() -> list[Any]:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = build_scope("POST", "/v1/score")
        await app(scope, receive, send)
        return sent

    assert asyncio.run(leave()) == []
    assert ask("POST", "/v1/score", encoded(GOOD), app=app).status == 200
    assert series(ask, app)['callgrade_http_requests_total{method="POST",route="/v1/score",status="499"}'] == 1


def series(ask: Ask, app: FastAPI) -> dict[str, float]:
    """The samples of /metrics by name and labels."""

    def samples() -> Iterator[tuple[str, float]]:
        for line in ask("GET", "/metrics", app=app).body.decode().splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                yield name, float(value)

    return dict(samples())


def test_what_is_done_is_counted(ask: Ask) -> None:
    app = create_app()
    ask("POST", "/v1/score", encoded(GOOD), app=app)
    ask("POST", "/v1/score", encoded(CASES[4]["request"]), app=app)
    ask("POST", "/v1/score", b"{", app=app)
    ask("GET", "/nope", app=app)
    ask("BREW", "/livez", app=app)
    ask("GET", "/v1/rubrics/four_step", app=app, headers={"sec-fetch-site": "cross-site"})
    found = series(ask, app)
    requests = "callgrade_http_requests_total"
    assert {name: value for name, value in found.items() if name.startswith(requests)} == {
        requests + '{method="POST",route="/v1/score",status="200"}': 2,
        requests + '{method="POST",route="/v1/score",status="400"}': 1,
        requests + '{method="GET",route="other",status="404"}': 1,
        requests + '{method="other",route="/livez",status="405"}': 1,
        requests + '{method="GET",route="/v1/rubrics/{rubric_id}",status="403"}': 1,
    }
    assert found['callgrade_http_request_seconds_count{route="/v1/score"}'] == 3
    assert found["callgrade_http_in_flight"] == 1  # the request that reads it
    assert found['callgrade_reports_total{rubric="four_step",verdict="pass"}'] == 1
    assert found['callgrade_reports_total{rubric="other",verdict="fail"}'] == 1

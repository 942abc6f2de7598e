"""What is told of requests: log lines, short and without what callers sent, and the audit log over HTTP."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from fastapi import FastAPI

from service.api.app import create_app
from service.core.report import Report
from service.engine import Engine
from service.logs.lines import MAX_LINE_BYTES, JsonFormatter, fit_line
from service.reading.request import ScoreRequest
from service.settings import Settings
from service.store.access.audit import Actor
from service.store.access.keys import Keys
from service.store.database import Database
from service.store.jobs.jobs import Batches
from service.wiring import build_engine
from tests.api.asgi_caller import JSON, Answer, Ask, bearer
from tests.api.test_hostile import with_raw_text, with_rubrics, with_text
from tests.jobs.process import until
from tests.store.test_store_batches import chunks, submission

CANARY = "canary-1f6d"


@pytest.fixture
def lines() -> Iterator[Any]:
    """Everything that is logged from INFO up, by anybody, as the service writes it; called, gives the lines so far."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield lambda: stream.getvalue().splitlines()
    root.removeHandler(handler)
    root.setLevel(level)


class Quoting(Engine):
    """An engine that fails as Python does: with a piece of the payload in the message."""

    def answer(self, request: ScoreRequest) -> Report:
        try:
            return {}[request.model_dump_json()]
        except KeyError as error:
            raise RuntimeError(f"cannot score {request!r}") from error


@pytest.fixture
def fresh() -> FastAPI:
    return create_app()


def test_a_request_is_one_line_with_what_operators_need(ask: Ask, fresh: FastAPI, lines: Any) -> None:
    ask("POST", "/v1/score", json.dumps(with_text("x")).encode(), app=fresh, headers=JSON | {"x-request-id": "r-1"})
    (line,) = [json.loads(line) for line in lines()]
    assert line.pop("ms") > 0
    assert line.pop("time")
    assert line == {
        "level": "info",
        "logger": "callgrade.access",
        "message": "request",
        "method": "POST",
        "route": "/v1/score",
        "status": 200,
        "request_id": "r-1",
    }


HEADERS = {
    "authorization": f"Bearer {CANARY}",
    "cookie": CANARY,
    "x-api-key": CANARY,
    "user-agent": CANARY,
    "referer": CANARY,
}


def test_payloads_and_secrets_are_in_no_log_and_no_metric(ask: Ask, fresh: FastAPI, lines: Any) -> None:
    good, raw = with_text(CANARY), with_raw_text(CANARY)
    bodies: list[tuple[str, bytes]] = [
        *[("/v1/score", json.dumps(body).encode()) for body in (good, raw, [CANARY], {CANARY: CANARY})],
        ("/v1/score", json.dumps(good | {"rubric": CANARY}).encode()),
        ("/v1/score", json.dumps(good | {"rubric": own_rubric()}).encode()),
        ("/v1/score", json.dumps(good).encode()[:-1]),
        ("/v1/score", b'{"%b": 1, "%b": 2}' % (CANARY.encode(), CANARY.encode())),
        *[("/v1/score", json.dumps(good | {"rubric": rubric}).encode()) for rubric in with_rubrics(CANARY)],
        (f"/{CANARY}", b""),
        (f"/v1/rubrics/{CANARY}", b""),
    ]
    for path, body in bodies:
        for method in ("POST", "GET", "HEAD", CANARY):
            ask(method, path, body, app=fresh, headers=JSON | HEADERS, query=f"key={CANARY}".encode())
    ask("POST", "/v1/score", b"{}", app=fresh, headers={"content-type": CANARY, "content-encoding": CANARY})
    assert len(lines()) == 4 * len(bodies) + 1
    assert CANARY not in "\n".join(lines())
    metrics = ask("GET", "/metrics", app=fresh).body.decode()
    assert not [word for word in (CANARY, own_rubric()["id"]) if word in metrics]


def own_rubric() -> dict[str, Any]:
    """A rubric whose id is nobody's business but the caller's."""
    name = CANARY.replace("-", "_")
    return {"id": name, "title": CANARY, "criteria": [{"id": name, "stage": "decide", "check": {"kind": "decide"}}]}


def test_an_error_of_ours_is_logged_with_its_place_and_without_its_words(ask: Ask, lines: Any) -> None:
    app = create_app(engine=Quoting(build_engine(Settings()).registry))
    answer = ask("POST", "/v1/score", json.dumps(with_text(CANARY)).encode(), app=app)
    assert (answer.status, CANARY in answer.body.decode()) == (500, False)
    error, request = [json.loads(line) for line in lines()]
    assert (error["level"], request["status"]) == ("error", 500)
    assert error["exception"].startswith("builtins.RuntimeError\n")
    assert "test_logs.py" in error["exception"]
    assert error["request_id"] == request["request_id"] == answer.headers["x-request-id"]
    assert CANARY not in "\n".join(lines())


def record(message: str, *, args: tuple[Any, ...] = (), fields: dict[str, Any] | None = None) -> logging.LogRecord:
    made = logging.LogRecord("a.logger", logging.WARNING, "file.py", 1, message, args, None)
    if fields is not None:
        made.__dict__["fields"] = fields
    return made


NASTY = [
    "two\r\nlines",
    '{"level": "error", "message": "forged"}\n{"level": "error"}',
    "\x1b[31mred\x1b[0m \x07\x08\x7f\x9b",
    "\u2028\u2029\u0085\u202e",
    "\x00",
    "\ud800",
    "\ud83d\ude00" * 100_000,
    "\U0001f600" * 100_000,
    "a" * 1_000_000,
    '"' * 1_000_000,
    "\x01" * 1_000_000,
]


@pytest.mark.parametrize("text", NASTY, ids=lambda text: ascii(text[:12]))
def test_any_text_makes_one_short_line_of_json(text: str) -> None:
    many = {f"field_{n}": text for n in range(12)}
    for made in (
        record(text),
        record("%s", args=(text,)),
        record("m", fields={"field": text, "list": [text]}),
        record("m", fields=many),
    ):
        line = JsonFormatter().format(made)
        assert len(line.encode()) <= MAX_LINE_BYTES
        assert line.isprintable()
        assert line.isascii()
        read = json.loads(line)
        assert {"time", "level", "logger", "message"} <= read.keys()
        assert "\ud800" not in read["message"]


VALUES = [
    (1.5, 1.5),
    (float("nan"), "nan"),
    (float("inf"), "inf"),
    (10**30, str(10**30)),
    (None, None),
    (True, True),
    ([1, "a"], "[1, 'a']"),
    (ValueError("x"), "ValueError('x')"),
]


@pytest.mark.parametrize(("value", "written"), VALUES)
def test_values_are_written_as_any_reader_of_json_takes_them(value: object, written: object) -> None:
    assert json.loads(fit_line({"value": value}), parse_constant=pytest.fail) == {"value": written}


def test_messages_of_exceptions_are_written_only_where_asked_for() -> None:
    made = record("m")
    error = ValueError(CANARY)
    made.exc_info = (ValueError, error, None)
    assert CANARY not in JsonFormatter().format(made)
    assert CANARY in JsonFormatter(with_messages=True).format(made)


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


def test_it_is_read_in_pages_and_by_act(ask: Ask, audited: FastAPI, store: Database) -> None:
    keys = Keys(store)
    text = keys.create(name="admin", scopes=["admin"])[1]
    for number in range(3):
        keys.revoke(keys.create(name=f"{number}")[0].id)
    first = entries(ask, audited, text, b"limit=2&act=key.revoke").json
    second = entries(ask, audited, text, f"limit=2&act=key.revoke&after={first['next']}".encode()).json
    assert [len(page["data"]) for page in (first, second)] == [2, 1]
    assert [(page["has_more"], page["next"] is None) for page in (first, second)] == [(True, False), (False, True)]


def test_a_request_leaves_when_its_key_was_used(ask: Ask, audited: FastAPI, store: Database) -> None:
    used, unused = (Keys(store).create(name=name, scopes=["metrics"]) for name in ("used", "unused"))
    assert ask("GET", "/metrics", app=audited, headers=bearer(used[1])).status == 200
    until(lambda: Keys(store).list_keys()[0].used_at is not None)  # it is written in a thread
    assert [key.used_at is not None for key in Keys(store).list_keys()] == [True, False]
    assert Keys(store).list_keys()[1].id == unused[0].id

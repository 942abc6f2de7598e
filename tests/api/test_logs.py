"""What is written while requests are answered: one JSON object a line, short, and nothing of what callers sent."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from service.api.app import create_app
from service.core.report import Report
from service.engine import Engine
from service.logs.lines import MAX_LINE_BYTES, JsonFormatter, fit_line
from service.reading.request import ScoreRequest
from service.settings import Settings
from service.wiring import build_engine
from tests.api.asgi_caller import JSON, Ask
from tests.api.test_hostile import with_raw_text, with_rubrics, with_text

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

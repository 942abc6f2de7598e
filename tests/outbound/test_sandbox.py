"""Sandboxes: what is sent and believed, what is a fault, and where no connection must ever go."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from service.api.app import create_app
from service.cli import main
from service.core.execution import (
    add_execution,
)
from service.core.trace import State, Step, ToolCall, ToolDef, Trace
from service.engine import Engine
from service.errors import InputError, SandboxError, SettingsError
from service.outbound.sandbox import Sandboxes
from service.reading.strict_json import Limits
from service.registry import Registry
from service.settings import Settings
from tests.api.asgi_caller import JSON, Answer, exchange
from tests.faults.receiver import Behaviour, Scripted, drip, http, scripted, whole_request
from tests.faults.sandbox_server import Sandbox

MESSAGE = {"initial": None, "calls": []}
GOOD = b'{"results": [], "final": {"door": "open"}}'


@contextmanager
def shop() -> Iterator[int]:
    """The example server; gives its port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Sandbox) as server:
        Sandbox.log_message = lambda *_: None  # type: ignore[method-assign]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def local(port: int, **more: Any) -> Sandboxes:
    return Sandboxes([f"127.0.0.1:{port}"], allow_private=True, **more)


def asked(server: Scripted, **more: Any) -> Any:
    sandboxes = local(server.port, **more)
    return asyncio.run(sandboxes.ask(sandboxes.admit(f"http://127.0.0.1:{server.port}/run"), MESSAGE))


# What is sent and believed.


def test_the_next_address_is_tried_where_one_takes_no_connection() -> None:
    with scripted(http(GOOD)) as server:
        sandboxes = local(server.port, resolve=lambda *_: ["127.0.0.2", "127.0.0.1"])
        assert asyncio.run(sandboxes.ask(sandboxes.admit(f"http://127.0.0.1:{server.port}"), MESSAGE)) == json.loads(
            GOOD
        )


# Faults.


OK = b"HTTP/1.1 200 OK\r\n"
FAULTS: list[tuple[str, Behaviour | bytes, str]] = [
    ("an error", http(b"oops", b"HTTP/1.1 500 No\r\n"), "answered 500"),
    ("nothing to say", b"HTTP/1.1 204 Nothing\r\n\r\n", "answered 204"),
    ("garbage", b"\x00\xff\xfe not HTTP\r\n\r\n", "did not answer: "),
    ("nothing at all", b"", "did not answer: "),
    ("no JSON", http(b"hello"), "not JSON we accept"),
    ("no UTF-8", http(b'{"results": [], "final": "\xff"}'), "not JSON we accept"),
    ("NaN", http(b'{"results": [], "final": NaN}'), "not JSON we accept"),
    ("a key twice", http(b'{"results": [], "results": [], "final": 1}'), "not JSON we accept"),
    ("cut off", OK + b"Content-Length: 999\r\n\r\n" + GOOD[:-5], "did not answer: "),
    ("huge", http(b" " * 5_000 + GOOD), "passes 4096 bytes"),
    (
        "endless",
        drip(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"400\r\n" + b" " * 0x400 + b"\r\n"),
        "passes 4096 bytes",
    ),
    ("dripping in its body", drip(OK + b"Content-Length: 4000\r\n\r\n", b" "), "not within 0.4 seconds"),
]


@pytest.mark.parametrize(("behaviour", "words"), [pytest.param(b, w, id=name) for name, b, w in FAULTS])
def test_whatever_goes_wrong_is_a_fault(behaviour: Behaviour | bytes, words: str) -> None:
    with scripted(behaviour) as server, pytest.raises(SandboxError) as caught:
        asked(server, timeout=0.4 if "within" in words else 60, limits=Limits(max_bytes=4096))
    assert words in str(caught.value)


def test_a_name_without_an_address_is_a_fault() -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    for resolve, words in ((unknown, "not known"), (lambda *_: [], "no address")):
        sandboxes = Sandboxes(["a.example"], resolve=resolve)
        with pytest.raises(SandboxError, match=words):
            asyncio.run(sandboxes.ask(sandboxes.admit("https://a.example"), MESSAGE))


# TLS.


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate of shop.example, made on the spot."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is needed to make a certificate")
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    key = file.with_name("key.pem")
    options = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=shop.example -addext subjectAltName=DNS:shop.example"
    made = [openssl, *options.split(), "-keyout", str(key), "-out", str(file)]
    subprocess.run(made, check=True, capture_output=True)
    file.write_text(file.read_text() + key.read_text())
    return file


TRUST = [("shop.example", True, None), ("shop.example", False, "SSLCert"), ("other.example", True, "SSLCert")]


@pytest.mark.parametrize(("host", "trusted", "words"), TRUST)
def test_tls_is_checked_against_the_name(certificate: Path, host: str, trusted: bool, words: str | None) -> None:
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate)

    def behave(connection: socket.socket) -> None:
        with server_side.wrap_socket(connection, server_side=True) as wrapped:
            whole_request(wrapped)
            wrapped.sendall(http(GOOD))

    class Encrypted(Scripted):
        def _answer(self, connection: socket.socket) -> None:
            with connection, suppress(OSError):
                self.behaviour(connection)

    server = Encrypted(behave)
    with closing(server.listener):
        sandboxes = Sandboxes(
            [f"{host}:{server.port}"],
            allow_private=True,
            resolve=lambda *_: ["127.0.0.1"],
            tls=lambda: ssl.create_default_context(cafile=str(certificate) if trusted else None),
        )
        target = sandboxes.admit(f"https://{host}:{server.port}/")
        if words is None:
            assert asyncio.run(sandboxes.ask(target, MESSAGE)) == json.loads(GOOD)
            return
        with pytest.raises(SandboxError, match=words):
            asyncio.run(sandboxes.ask(target, MESSAGE))


# The pure part.

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


TOOL = ToolDef("f", parameters=SCHEMA)


def trace_of(*calls: ToolCall, tools: Any = (TOOL,), state: State | None = None) -> Trace:
    return Trace("t", "callgrade", tools, (), tuple(Step(i, 0, c) for i, c in enumerate(calls)), None, 0, state)


CALLS = (
    ToolCall("a", "f", {"n": 1}),
    ToolCall("a", "f", {"n": "1"}),
    ToolCall(None, "g", {}),
    ToolCall(None, "f", None, "{", "not valid JSON"),
    ToolCall(None, "f", None, captured=False),
)


WRONG = [
    ([], "does not fit"),
    ({"results": []}, "/final"),
    ({"final": 1}, "/results"),
    ({"results": {}, "final": 1}, "/results"),
    ({"results": [{"content": 1}], "final": 1}, "/results/0/id"),
    ({"results": [{"id": "step_0"}], "final": 1}, "/results/0/content"),
    ({"results": [{"id": 0, "content": 1}], "final": 1}, "/results/0/id"),
    ({"results": [{"id": "step_0", "content": 1, "is_error": "no"}], "final": 1}, "/results/0/is_error"),
    ({"results": [], "final": 1}, "one result for each call"),
    ({"results": [{"id": "step_9", "content": 1}], "final": 1}, "one result for each call"),
    ({"results": [{"id": "step_0", "content": 1}, {"id": "step_1", "content": 1}], "final": 1}, "one result for each"),
    ({"results": [{"id": "step_0", "content": 1}] * 2, "final": 1}, "two results"),
]


@pytest.mark.parametrize(("reply", "words"), WRONG)
def test_a_reply_that_does_not_answer_the_calls_is_a_fault(reply: Any, words: str) -> None:
    trace = trace_of(CALLS[0])
    with pytest.raises(SandboxError) as caught:
        add_execution(trace, trace.steps, reply)
    assert words in str(caught.value)


# From end to end.

NUMBER = {"type": "integer"}
TOOLS = [
    {
        "name": "refund_order",
        "parameters": {
            "type": "object",
            "properties": {"order_id": {"type": "string"}, "cents": NUMBER},
            "required": ["order_id", "cents"],
        },
    }
]


def refund(cents: Any) -> dict[str, Any]:
    return {"call": {"name": "refund_order", "arguments": {"order_id": "8821", "cents": cents}}}


def body(port: int, *events: dict[str, Any], final: int = 0, **sandbox: Any) -> dict[str, Any]:
    state = {"initial": {"orders": {"8821": {"cents": 5400}}}}
    return {
        "trace": {
            "format": "callgrade",
            "tools": TOOLS,
            "events": [{"user": "Refund order 8821."}, *events, {"assistant": "Done."}],
            "state": state,
        },
        "expected": {
            "calls": [{"tool": "refund_order", "result": {"refunded": 5400}}],
            "state": {"final": {"orders": {"8821": {"cents": final}}}},
        },
        "rubric": {
            "id": "effects",
            "version": 1,
            "criteria": [
                {"id": "schema", "stage": "arguments", "check": {"kind": "schema"}},
                {"id": "calls", "stage": "select", "check": {"kind": "tool_name"}},
                {"id": "results", "stage": "effect", "check": {"kind": "results"}},
                {"id": "state", "stage": "effect", "check": {"kind": "state"}},
            ],
        },
        "sandbox": {"url": f"http://127.0.0.1:{port}/", **sandbox},
    }


def app_with(port: int, tmp_path: Path) -> FastAPI:
    return create_app(Settings(home=tmp_path, sandbox_hosts=(f"127.0.0.1:{port}",), sandbox_allow_private=True))


def post(app: FastAPI, path: str, document: Any) -> Answer:
    async def chunks() -> tuple[bytes, bool]:
        return json.dumps(document).encode(), False

    return asyncio.run(exchange(app, "POST", path, chunks, JSON, b""))


def outcomes(report: Any) -> dict[str, Any]:
    found = {one["id"]: one["outcomes"][0]["outcome"] for one in report["criteria"] if one["outcomes"]}
    return found | {name: outcome for step in report["steps"] for name, outcome in step["outcomes"].items()}


def test_the_example_server_makes_the_calls(tmp_path: Path) -> None:
    with shop() as port:
        answer = post(app_with(port, tmp_path), "/v1/score", body(port, refund(5400)))
    assert answer.status == 200
    report = answer.json
    assert {name: outcome["value"] for name, outcome in outcomes(report).items()} == dict.fromkeys(
        ("schema", "calls", "results", "state"), 1.0
    )
    assert (report["verdict"], report["score"], report["executed"]) == ("pass", 1.0, None)


def test_attempts_and_what_was_executed_stand_side_by_side(tmp_path: Path) -> None:
    with shop() as port:
        report = post(app_with(port, tmp_path), "/v1/score", body(port, refund(9900), refund(5400))).json
    assert report["score"] == 1.0  # the first is a failed try of the second
    assert report["executed"] == {"verdict": "pass", "score": 1.0, "coverage": 1.0, "steps": 1}
    assert len(report["steps"]) == 2


def test_a_call_that_fails_the_schema_is_not_run_unless_asked(tmp_path: Path) -> None:
    sent: list[list[str]] = []
    reply = {"results": [], "final": {"orders": {"8821": {"cents": 0}}}}

    def answer(connection: socket.socket) -> None:
        calls = json.loads(server.requests[-1].partition(b"\r\n\r\n")[2])["calls"]
        sent.append([call["id"] for call in calls])
        results = [{"id": call["id"], "content": {"refunded": 5400}} for call in calls]
        connection.sendall(http(json.dumps(reply | {"results": results}).encode()))

    with scripted(answer) as server:
        app = app_with(server.port, tmp_path)
        told = [
            post(app, "/v1/score", body(server.port, refund("x"), refund(5400), **more)).json
            for more in ({}, {"run_invalid": True})
        ]
    assert sent == [["step_1"], ["step_0", "step_1"]]
    # What was not made is not among what was executed; what was made and did not fail is, valid or not.
    assert [report["executed"] and report["executed"]["steps"] for report in told] == [1, None]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (http(b"", b"HTTP/1.1 503 No\r\n"), "answered 503"),
        (http(b"{}"), "does not fit"),
        (http(GOOD), "one result for each call"),
    ],
)
def test_a_fault_is_an_error_of_the_effects_and_the_rest_stands(tmp_path: Path, reply: bytes, words: str) -> None:
    with scripted(reply) as server:
        answer = post(app_with(server.port, tmp_path), "/v1/score", body(server.port, refund(5400)))
    assert answer.status == 200
    found = outcomes(answer.json)
    for name in ("results", "state"):
        assert (found[name]["kind"], found[name]["cause"]) == ("errored", "sandbox")
        assert words in found[name]["reason"]
    assert [found[name]["value"] for name in ("schema", "calls")] == [1.0, 1.0]
    assert answer.json["score"] == 1.0
    assert answer.json["coverage"] == 0.5


def test_a_sandbox_that_is_not_allowed_is_refused(tmp_path: Path) -> None:
    with scripted(http(GOOD)) as server:
        for app in (app_with(1, tmp_path), create_app(Settings(home=tmp_path))):
            answer = post(app, "/v1/score", body(server.port, refund(5400)))
            assert answer.status == 422
            assert [place["pointer"] for place in answer.problem["errors"]] == ["/sandbox/url"]
    assert server.requests == []


def test_a_final_state_that_is_known_is_not_asked_for(tmp_path: Path) -> None:
    document = body(0, refund(5400))
    document["trace"]["state"]["final"] = {"orders": {"8821": {"cents": 0}}}
    with scripted(http(GOOD)) as server:
        document["sandbox"]["url"] = f"http://127.0.0.1:{server.port}/"
        report = post(app_with(server.port, tmp_path), "/v1/score", document).json
    assert outcomes(report)["state"]["value"] == 1.0
    assert server.requests == []


def test_the_front_that_does_not_wait_refuses() -> None:
    with pytest.raises(InputError) as caught:
        Engine(Registry()).score(body(1, refund(5400)))
    assert [problem.path for problem in caught.value.problems] == ["/sandbox"]


def test_without_a_sandbox_both_fronts_say_the_same() -> None:
    document = {name: value for name, value in body(1, refund(5400)).items() if name != "sandbox"}
    engine = Engine(Registry())
    assert asyncio.run(engine.score_async(document)) == engine.score(document)


BAD_SETTINGS = [
    ("CALLGRADE_SANDBOX_HOSTS", "https://a.example"),
    ("CALLGRADE_SANDBOX_HOSTS", "a.example/run"),
    ("CALLGRADE_SANDBOX_HOSTS", "*.example"),
    ("CALLGRADE_SANDBOX_ALLOW_PRIVATE", "yes"),
    ("CALLGRADE_SANDBOX_TIMEOUT", "0"),
]


@pytest.mark.parametrize(("variable", "text"), BAD_SETTINGS)
def test_settings_that_cannot_be_used(variable: str, text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({variable: text})
    assert [problem.path for problem in caught.value.problems] == [variable]


def test_the_command_line_waits_for_the_sandbox(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = tmp_path / "requests.jsonl"
    with shop() as port:
        file.write_text(json.dumps(body(port, refund(5400))) + "\n")
        monkeypatch.setenv("CALLGRADE_HOME", str(tmp_path))
        monkeypatch.setenv("CALLGRADE_SANDBOX_HOSTS", f"127.0.0.1:{port}")
        monkeypatch.setenv("CALLGRADE_SANDBOX_ALLOW_PRIVATE", "true")
        code = main(["score", str(file), "--format", "ndjson"])
    assert code == 0
    assert json.loads(capsysbinary.readouterr().out)["score"] == 1.0

"""Loopback is no trust: who may ask a service that asks for no key, by the headers that a browser sets and no page can."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from service.api.app import create_app
from service.settings import Settings
from service.store.access.keys import Keys
from service.wiring import prepare_database
from tests.api.asgi_caller import Ask
from tests.api.test_server import GOOD, Server, serving
from tests.jobs.process import until
from tests.tables import DATA, read_yaml

HEADS = read_yaml(DATA / "api" / "foreign.yaml")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("home"), allowed_hosts="tool.lan,only.lan:81") as running:
        yield running


def sent(server: Server, start: str, host: str, *headers: str, body: bytes = b"") -> tuple[int, bytes]:
    lines = [f"{start} HTTP/1.1", f"host: {host}", *headers, f"content-length: {len(body)}", "", ""]
    connection = server.connect()
    connection.send("\r\n".join(lines).format(port=server.port).encode() + body)
    return connection.answer()


@pytest.mark.parametrize("given", HEADS["ours"])
def test_what_is_ours_is_answered(server: Server, given: list[str]) -> None:
    assert sent(server, "GET /v1/rubrics", *given)[0] == 200
    assert sent(server, "POST /v1/score", *given, "content-type: application/json", body=GOOD)[0] == 200


@pytest.mark.parametrize("given", HEADS["foreign"])
def test_what_a_page_of_elsewhere_sends_is_refused(server: Server, given: list[str]) -> None:
    for start in ("GET /v1/rubrics", "GET /metrics", "GET /docs", "GET /v1/batches", "OPTIONS /v1/score"):
        assert sent(server, start, *given)[0] == 403, start
    status, answer = sent(server, "POST /v1/score", *given, "content-type: application/json", body=GOOD)
    assert (status, json.loads(answer)["title"]) == (403, "Forbidden")


def test_probes_are_answered_by_any_name(server: Server) -> None:
    assert sent(server, "GET /livez", "10.0.0.7:8000")[0] == 200
    until(lambda: sent(server, "GET /readyz", "10.0.0.7:8000")[0] == 200)  # it may still be loading


def test_with_keys_the_key_is_what_counts(ask: Ask, tmp_path) -> None:
    database = prepare_database(Settings(home=tmp_path))
    key = Keys(database).create(name="a", scopes=["score"])[1]
    app = create_app(Settings(home=tmp_path), database=database)
    headers = {"host": "callgrade.example", "origin": "https://dashboard.example", "authorization": f"Bearer {key}"}
    assert ask("GET", "/v1/rubrics", app=app, headers=headers).status == 200
    database.close()


def test_without_a_length_a_body_must_say_so_too(server: Server) -> None:
    connection = server.connect()
    connection.send(b"POST /v1/score HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n")
    assert connection.answer()[0] == 415

"""A client that leaves is worked for no longer, to the last call of a judge; nor is anybody after the end of a service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from service.cli.exits import ExitCode
from tests.api.test_server import GOOD, Connection, Server, head, serving
from tests.faults.provider import Provider
from tests.faults.provider import serving as providing
from tests.jobs.process import TOOLS, request, until

RUBRIC = request(0)["rubric"]


def many(calls: int) -> dict[str, Any]:
    """A request with a question for each of so many calls."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Refund them."}]
    for number in range(calls):
        call = {"name": "refund", "arguments": json.dumps({"order": number})}
        calling = {"id": f"c{number}", "type": "function", "function": call}
        messages += [
            {"role": "assistant", "tool_calls": [calling]},
            {"role": "tool", "tool_call_id": calling["id"], "content": "ok"},
        ]
    return {"rubric": RUBRIC, "trace": {"format": "openai", "messages": messages, "tools": TOOLS}}


@contextmanager
def judged(home: Path, *, latency: float, **settings: str) -> Iterator[tuple[Server, Provider]]:
    """A server whose judge takes so many seconds."""
    with providing(Provider(latency=latency)) as provider:
        judge = {"judge_model": "openai/gpt-fine", "judge_api_base": provider.base(), "judge_api_key": "none"}
        with serving(home, **judge, **settings) as server:
            yield server, provider


def begin(server: Server, path: str, body: Any) -> Connection:
    sent = json.dumps(body).encode()
    connection = server.connect()
    connection.send(head("POST", path, len(sent)) + sent)
    return connection


def under_way(server: Server) -> int:
    told = server.ask("GET", "/metrics")[1].decode()
    return int(float(told.partition("\ncallgrade_http_in_flight ")[2].split()[0])) - 1


def test_who_leaves_has_no_more_calls_made(tmp_path: Path) -> None:
    with judged(tmp_path, latency=1.0, judge_in_flight="20") as (server, provider):
        connection = begin(server, "/v1/score", many(300))
        until(lambda: len(provider.requests) >= 20)
        connection.close()
        until(lambda: under_way(server) == 0)
        made = len(provider.requests)
        assert made < 300
        other = begin(server, "/v1/score", request(1_000))  # it waits for no call of one who is gone
        assert other.answer()[0] == 200
        assert len(provider.requests) <= made + 21  # those under way may have been sent a moment before
        assert '"status": 499' in "".join(server.log)


def test_a_call_that_another_waits_for_goes_on(tmp_path: Path) -> None:
    with judged(tmp_path, latency=2.0) as (server, provider):
        first, second = (begin(server, "/v1/score", request(1)) for _ in range(2))
        until(lambda: under_way(server) == 2 and len(provider.requests) == 1)
        first.close()
        until(lambda: under_way(server) == 1)
        status, report = second.answer()
        outcome = json.loads(report)["steps"][0]["outcomes"]["argument_plausibility"]
        assert (status, outcome["kind"], len(provider.requests)) == (200, "scored", 1)


def test_at_the_end_of_a_service_calls_end_too(tmp_path: Path) -> None:
    with judged(tmp_path, latency=600.0, graceful_seconds="1") as (server, provider):
        begin(server, "/v1/score", many(300))
        until(lambda: len(provider.requests) > 0)
        made = len(provider.requests)
        assert server.stop() == 0
        assert len(provider.requests) <= made + 64


@pytest.mark.parametrize("padding", [0, 20_000], ids=["on the event loop", "in a thread"])
def test_what_nothing_can_end_does_not_hold_the_process(tmp_path: Path, padding: int) -> None:
    endless = json.dumps(json.loads(GOOD) | {"tags": {"busy": "yes"}}).encode() + b" " * padding
    with serving(tmp_path, module="tests.api.busy", graceful_seconds="1") as server:
        connection = server.connect()
        connection.send(head("POST", "/v1/score", len(endless)) + endless)
        until(lambda: "busy" in server.file.read_text())
        assert server.stop() == ExitCode.INTERNAL
        assert "ended before all was done" in server.file.read_text()

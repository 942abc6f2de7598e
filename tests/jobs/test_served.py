"""The whole of it: a server with its worker, a batch over HTTP, its events, its results, and the notice of its end."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.outbound.webhooks import verify
from tests.faults.provider import Provider, serving
from tests.faults.receiver import http, scripted
from tests.jobs.process import Service, request, service

SECRET = "whsec_c2VjcmV0"
LINES = {"content-type": "application/x-ndjson"}


def address(run: Service) -> str:
    run.until(lambda: '"listening"' in run.log())
    first = next(line for line in run.log().splitlines() if '"listening"' in line)
    return f"http://127.0.0.1:{json.loads(first)['port']}"


def body(number: int) -> bytes:
    return b"".join(json.dumps({"custom_id": f"c{n}", **request(n)}).encode() + b"\n" for n in range(number))


def events(client: httpx.Client, path: str) -> list[Any]:
    """The batch as each event of a stream tells it, to the end of the stream."""
    with client.stream("GET", path, timeout=120) as stream:
        return [json.loads(line.removeprefix("data:")) for line in stream.iter_lines() if line.startswith("data:")]


def test_a_batch_from_its_submission_to_the_notice_of_its_end(tmp_path: Path) -> None:
    answers = [b"HTTP/1.1 503 Not Now\r\nContent-Length: 0\r\n\r\n", http(b"")]

    def busy_at_first(connection: socket.socket) -> None:
        connection.sendall(answers.pop(0))

    provider = Provider(latency=0.01)
    with scripted(busy_at_first) as receiver, serving(provider):
        settings = {
            "CALLGRADE_WEBHOOK_HOSTS": f"127.0.0.1:{receiver.port}",
            "CALLGRADE_WEBHOOK_ALLOW_PRIVATE": "true",
            "CALLGRADE_WEBHOOK_SECRET": SECRET,
        }
        with service(f"sqlite:///{tmp_path}/store.db", tmp_path, provider, **settings) as run:
            run.start("serve", "--port", "0")
            with httpx.Client(base_url=address(run), timeout=120) as client:
                hook = f"http://127.0.0.1:{receiver.port}/hook"
                made = client.post("/v1/batches", params={"webhook": hook}, content=body(100), headers=LINES)
                assert made.status_code == 202, made.text
                path = made.headers["location"]
                last = events(client, f"{path}/events")[-1]
                assert (last["status"], last["request_counts"]["completed"]) == ("completed", 100)
                lines = [json.loads(line) for line in client.get(f"{path}/results").text.splitlines()]
                assert [one["custom_id"] for one in lines] == [f"c{n}" for n in range(100)]
                assert {one["report"]["steps"][0]["outcomes"]["argument_plausibility"]["kind"] for one in lines} == {
                    "scored"
                }
                assert client.get(f"{path}/errors").text == ""
                assert client.get(f"{path}/summary").json()["rates"]["cases"] == 100
                # What a request asks is counted in its day as what a batch asks is: by each process, for all.
                assert client.post("/v1/score", json=request(10**6)).json()["verdict"] == "pass"
                run.until(lambda: [day["questions"] for day in client.get("/v1/usage").json()["data"]] == [101])
                run.until(lambda: client.get(path).json()["webhook"]["status"] == "delivered")
    assert len(receiver.requests) == 2
    for sent in receiver.requests:
        head, _, told = sent.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        verify(SECRET, headers, told)
        assert json.loads(told)["type"] == "batch.completed"
        assert json.loads(told)["data"]["id"] == last["id"]


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.chaos)])  # two load all anew
def test_who_watches_does_not_hold_up_the_end_of_the_service(tmp_path: Path, workers: str) -> None:
    settings = {"CALLGRADE_WORKER": "false", "CALLGRADE_GRACEFUL_SECONDS": "300"}
    with service(f"sqlite:///{tmp_path}/store.db", tmp_path, Provider(), **settings) as run:
        server = run.start("serve", "--port", "0", "--workers", workers, anew=workers == "2")
        with httpx.Client(base_url=address(run), timeout=120) as client:
            made = client.post("/v1/batches", content=body(1), headers=LINES)
            with client.stream("GET", f"{made.headers['location']}/events") as stream:
                lines = stream.iter_lines()
                assert next(lines).startswith("retry:")
                server.terminate()
                server.wait(60)
                assert '"status":"in_progress"' in "".join(lines)  # its end as that of a stream

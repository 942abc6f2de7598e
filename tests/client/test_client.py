"""The client of a running service: what it tries again, what it raises, what it streams."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import service
from service import Client, ForeignError, RefusedError, Retries, UnreachableError
from tests.cli.served import served
from tests.faults.provider import Provider
from tests.faults.scripted import Answer, Scripted, scripted

REQUEST: dict[str, Any] = {
    "trace": {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]},
    "expected": {"calls": "none"},
    "judges": "off",
}
REPORT = service.report_json(service.score(REQUEST))
BUSY = json.dumps({"type": "about:blank", "title": "Busy", "status": 503, "detail": "busy", "errors": []}).encode()


@dataclass
class Waits:
    """What was slept, in seconds."""

    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


Work = Callable[[Any], Any]


def perform(url: str, work: Work, waits: Waits, retries: Retries) -> Any:
    with Client(url, retries=retries, sleep=waits.sleep) as client:
        found = work(client)
        return list(found) if inspect.isgenerator(found) else found


CALM = Retries(draw=lambda: 1.0)


@contextmanager
def answering(*answers: Answer) -> Iterator[Scripted]:
    """A server that gives these answers to the same request, the last of them from then on."""
    with scripted(lambda _, n: answers[min(n, len(answers) - 1)]) as script:
        yield script


@pytest.mark.parametrize(
    ("fault", "slept"),
    [
        (Answer(BUSY, 503), [0.5, 1.0]),
        (Answer(BUSY, 503, {"retry-after": "7"}), [7.0, 7.0]),
        (Answer(b"<html>", 502), [0.5, 1.0]),
        (Answer(b"{", 200, missing=10), [0.5, 1.0]),
    ],
)
def test_what_may_pass_is_tried_again_when_the_service_says(fault: Answer, slept: list[float]):
    waits = Waits()
    with answering(fault, fault, Answer(REPORT)) as script:
        report = perform(script.url, lambda client: client.score(REQUEST), waits, CALM)
    assert service.report_json(report) == REPORT
    assert waits.slept == slept


@pytest.mark.parametrize(
    ("answer", "error", "asked"),
    [
        (Answer(BUSY, 503), RefusedError, 4),
        (Answer(BUSY, 503, {"retry-after": "3600"}), RefusedError, 1),
        (Answer(BUSY.replace(b"503", b"422"), 422), RefusedError, 1),
        (Answer(b"<html>", 200), ForeignError, 1),
    ],
)
def test_an_error_has_the_problem_document(answer: Answer, error: type[Exception], asked: int):
    with answering(answer) as script, pytest.raises(error) as found:
        perform(script.url, lambda client: client.score(REQUEST), Waits(), CALM)
    assert len(script.asked) == asked
    if isinstance(found.value, RefusedError):
        assert found.value.problem.detail == "busy"


def test_nobody_there_is_an_error_of_its_own():
    with pytest.raises(UnreachableError):
        perform("http://127.0.0.1:1", lambda client: client.score(REQUEST), Waits(), Retries(attempts=2))


def lines(first: int, last: int) -> bytes:
    return b"".join(b'{"index": %d}\n' % n for n in range(first, last))


@pytest.mark.parametrize("missing", [0, 50])
def test_outcomes_go_on_behind_the_last_whole_line(missing: int):
    heads = {"x-callgrade-next-offset": "3"}
    broken = Answer(lines(0, 2) + b'{"index": 2', headers=heads, missing=missing)

    def answer(request: str, _: int) -> Answer:
        if request.endswith("offset=0"):
            return broken
        done = request.endswith("offset=3")
        rest = lines(3, 5) if done else lines(2, 3)
        return Answer(
            rest, headers={"x-callgrade-next-offset": "5" if done else "3", "x-callgrade-complete": str(done).lower()}
        )

    with scripted(answer) as script:
        found = perform(script.url, lambda client: client.batches.iter_outcomes("b"), Waits(), CALM)
    assert [one["index"] for one in found] == [0, 1, 2, 3, 4]
    assert [one.rpartition("=")[2] for one in script.asked] == ["0", "2", "3"]


def test_without_waiting_all_that_is_done_comes_and_a_break_is_told():
    heads = {"x-callgrade-next-offset": "0"}  # the first item is not done
    answers = [Answer(lines(3, 5), headers=heads), Answer(lines(3, 5) + b"{", headers=heads)]
    with scripted(lambda _, n: answers[n]) as script:

        def fetch() -> Any:
            return perform(script.url, lambda client: client.batches.iter_outcomes("b", wait=False), Waits(), CALM)

        assert [one["index"] for one in fetch()] == [3, 4]
        with pytest.raises(UnreachableError):
            fetch()
    assert "offset" not in "".join(script.asked)


def test_a_batch_from_the_first_item_to_the_last_result(tmp_path: Path):
    items = [{**REQUEST, "custom_id": f"c{n}"} for n in range(3)]
    with served(tmp_path, Provider()) as there, Client(there.url, there.key) as client:
        assert client.score(REQUEST).verdict == "pass"
        found = client.batches.submit_items(items, name="three")
        assert not found.earlier
        assert client.batches.submit_items(items, name="three").job.id == found.job.id
        outcomes = list(client.batches.iter_outcomes(found.job.id))
        assert [one["custom_id"] for one in outcomes] == ["c0", "c1", "c2"]
        assert client.batches.find(found.job.id).status == "completed"
        assert [one.id for one in client.batches.page().data] == [found.job.id]
        with pytest.raises(RefusedError) as error:
            client.batches.submit_items([{"trace": 7}])
        assert error.value.problem.errors[0].pointer.startswith("/1/trace")

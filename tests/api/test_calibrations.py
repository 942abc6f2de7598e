"""Calibrations over HTTP, from labelled items to fits. The worker is played with its own parts; no model is asked."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from service.calibration.labels import read_labels
from service.calibration.options import ReportOptions
from service.calibration.predictions import read_predictions
from service.calibration.report_predictions import find_check
from service.calibration.results import render_report_json
from service.calibration.run import calibrate
from service.core.judging.fits.fit import Binding, Fit, calibrate_value
from service.engine import Engine
from service.fits.files import get_today, read_fits
from service.jobs.fitting import fit
from service.jobs.worker import send_notice
from service.registry import Registry
from service.settings import Settings
from service.store.database import Database
from service.store.jobs.calibrations import PendingFit
from service.store.jobs.submission import Material
from service.store.tables import BATCHES
from service.wiring import build_demo_judging
from tests.api.asgi_caller import Ask, list_pointers
from tests.api.played_client import PlayedClient as Client
from tests.store.played import ended
from tests.stores import open_new_store

PYTHON = sys.executable


def item(number: int, *, right: bool = True, label: bool | None = None, **more: Any) -> dict[str, Any]:
    """An answer about a payload, with a label."""
    told = 54 if right else 77
    labels = [{"annotator": "ana", "label": right if label is None else label}]
    payload = {"order": number, "amount_cents": 5400}
    written = {"id": f"i{number:03}", "criterion": "result_groundedness", "group": f"g{number:03}", "labels": labels}
    return {**written, "payload": payload, "answer": f"Order {number} cost ${told}.00.", **more}


def items(count: int) -> list[dict[str, Any]]:
    """Right and wrong answers; of each kind some that were labelled otherwise."""
    rng = random.Random(3)  # noqa: S311
    return [item(n, right=n % 2 == 0, label=(n % 2 == 0) == (rng.random() < 0.85)) for n in range(count)]


def said(one: Mapping[str, Any], raw: float, **more: Any) -> dict[str, Any]:
    return {"id": one["id"], "criterion": one["criterion"], "raw": raw, "model": "m", **more}


def rows(database: Database, table: sa.Table = BATCHES) -> int:
    with database.read() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


@pytest.fixture(autouse=True)
def _forked_fits(forked_python: None) -> None:
    """The processes that fit are forked."""


@pytest.fixture
def client(ask: Ask, store: Database) -> Client:
    return Client(ask, store)


@pytest.fixture(scope="module")
def done(ask: Ask, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, str]]:
    """120 items that a judge was asked about twice, and the fit; and the id of it."""
    database = open_new_store(tmp_path_factory.mktemp("done"))
    made = Client(ask, database, settings=Settings(batch_chunk=16, batch_max_items=300))
    begun = made.submit(items(120), repeats=2, name="nightly", method="isotonic")
    assert (begun["status"], begun["items"], begun["request_counts"]["total"]) == ("in_progress", 120, 240)
    assert (begun["unanswered"], begun["fits"], begun["rubric"]) == (None, 0, "four_step@2")
    made.work()
    yield made, begun["id"]
    database.close()


# From labels to fits.


def test_judged_items_are_fitted(done: tuple[Client, str], tmp_path: Path) -> None:
    client, name = done
    found = client.find(name).json
    assert (found["status"], found["reason"], found["unanswered"], found["reasons"]) == ("completed", None, 0, [])
    assert found["request_counts"]["completed"] == 240
    assert found["ended_at"]
    report = client.find(name, "/report").json
    [judge] = report["judges"]
    assert (report["source"], judge["fit"]["judge"], judge["fit"]["method"]) == (
        "nightly",
        "result_groundedness",
        "isotonic",
    )
    assert (judge["fit"]["labels"], judge["after"]["n"], judge["missing"], judge["why"]) == (120, 120, 0, "")
    assert judge["retest"]["flip_rate"]["value"] == 0.0
    [file] = client.find(name, "/fits").json["data"]
    assert found["fits"] == 1
    (tmp_path / file["name"]).write_text(json.dumps(file["fit"]))
    [read] = read_fits([tmp_path])
    assert (read.criterion, read.labels, file["fit"]) == ("result_groundedness", 120, judge["fit"])
    binding = Binding(
        read.judge, Registry().judges[read.judge].digest, "callgrade/stand-in", read.assembly, read.evidence
    )
    assert read.evidence == find_check(Registry().find("four_step"), "result_groundedness").evidence_digest
    assert calibrate_value([read], binding, "result_groundedness", 1.0).calibration.status == "calibrated"


def test_the_report_is_written_for_people_too(done: tuple[Client, str]) -> None:
    client, name = done
    markdown, page = (client.find(name, "/report", format=form) for form in ("markdown", "html"))
    assert markdown.headers["content-type"].startswith("text/markdown")
    assert b"groundedness" in markdown.body
    assert page.body.startswith(b"<!doctype html>")
    assert page.headers["content-type"].startswith("text/html")
    assert "sandbox" in page.headers["content-security-policy"]
    assert client.find(name, "/report", format="pdf").problem["status"] == 422


def test_fits_at_hand_do_not_reach_what_is_fitted_anew(done: tuple[Client, str], ask: Ask, store: Database) -> None:
    """The same items under an engine with the fit of the first run give the very same fit."""
    first, name = done
    [file] = first.find(name, "/fits").json["data"]
    engine = Engine(Registry(), judging=build_demo_judging(), fits=[Fit.model_validate_json(json.dumps(file["fit"]))])
    again = Client(ask, store, engine=engine, settings=Settings(batch_max_items=300))
    made = again.submit(items(120), repeats=2, name="again", method="isotonic")["id"]
    again.work()
    assert again.find(made, "/fits").json["data"][0]["fit"]["calibrator"] == file["fit"]["calibrator"]


TWO_JUDGES: dict[str, Callable[[int], float]] = {
    "cheap": lambda n: (0.1, 0.9)[n % 2 == 0] if n % 3 else 0.5,
    "dear": lambda n: (0.05, 0.95)[n % 2 == 0],
}
"""What each of two judges says of an item; the cheap one cannot make up its mind about every third."""


def test_two_judges_with_a_guarantee_are_fitted_as_without_a_service(ask: Ask, store: Database) -> None:
    client = Client(ask, store, engine=Engine(Registry()))
    listed = items(120)
    cheap, dear = (
        [said(one, raw(n), judge=judge) for n, one in enumerate(listed)] for judge, raw in TWO_JUDGES.items()
    )
    made = client.submit([*listed, *cheap, *dear], guarantee=0.8)
    client.work()
    assert client.find(made["id"]).json["status"] == "completed", client.find(made["id"]).json["reason"]
    files = client.find(made["id"], "/fits").json["data"]
    options = ReportOptions(guarantee=0.8, made=get_today())
    labels, predictions = read_labels(map(json.dumps, listed)), read_predictions(map(json.dumps, [*cheap, *dear]))
    ours = calibrate(labels, predictions, options)
    assert [file["fit"] for file in files] == [json.loads(render_report_json(fit)) for fit in ours.fits]
    assert len(ours.fits) > 1
    assert all(fit.guarantee is not None for fit in ours.fits)


# What is refused.

GOOD = item(1)
BAD: dict[str, tuple[int, list[Any], dict[str, object], list[str]]] = {
    "nothing": (400, [], {}, [""]),
    "an item without labels": (400, [GOOD, {**item(2), "labels": []}], {}, ["/2/labels"]),
    "two of one id": (400, [GOOD, GOOD], {}, ["/2/id"]),
    "a criterion of no judge": (400, [{**GOOD, "criterion": "schema"}], {}, ["/1/criterion"]),
    "a trace that is none": (400, [{**GOOD, "trace": {"format": "x"}}], {}, ["/1/trace"]),
    "a prediction out of range": (400, [GOOD, said(GOOD, 2)], {}, ["/2/raw"]),
    "one said twice": (400, [GOOD, said(GOOD, 1), said(GOOD, 1)], {}, ["/3/sample"]),
    "a guarantee of all": (422, [GOOD], {"guarantee": 1}, ["/guarantee"]),
    "no judges": (422, [GOOD], {"judges": "off"}, ["/judges"]),
    "an unknown rubric": (422, [GOOD], {"rubric": "none"}, ["/rubric"]),
    "a model that is not allowed": (422, [GOOD], {"judge_model": "openai/dear"}, ["/judge_model"]),
    "an unknown option": (422, [GOOD], {"splits": 3}, ["/splits"]),
    "a webhook": (422, [GOOD], {"webhook": "https://example.com"}, ["/webhook"]),
    "too many questions": (413, [item(n) for n in range(21)], {"repeats": 10}, [""]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_taken_is_refused_and_leaves_nothing(client: Client, name: str) -> None:
    status, rows, query, pointers = BAD[name]
    problem = client.refused(status, rows, **query)
    assert list_pointers(problem) == pointers


def test_without_a_judge_predictions_are_needed(ask: Ask, store: Database) -> None:
    client = Client(ask, store, engine=Engine(Registry()))
    assert "CALLGRADE_JUDGE_MODEL" in client.refused(422, [GOOD], judges="live")["detail"]
    assert "or predictions" in client.refused(422, [GOOD])["detail"]


# As batches are.


def test_its_end_is_told_as_its_own(store: Database, ask: Ask) -> None:
    told: list[tuple[str, str, bytes]] = []

    class Receiving:
        async def deliver(self, url: str, *, id: str, body: bytes) -> None:  # noqa: A002
            told.append((url, id, body))

    client = Client(ask, store)
    made = client.submit(items(2))["id"]
    client("POST", f"/v1/calibrations/{made}/cancel")
    ended(store, made)
    with store.begin() as connection:
        connection.execute(BATCHES.update().values(webhook="https://example.com/x"))
    asyncio.run(send_notice(store, Receiving(), made))  # type: ignore[arg-type]
    [(url, name, body)] = told
    assert (url, name) == ("https://example.com/x", made)
    assert json.loads(body)["type"] == "calibration.cancelled"
    assert json.loads(body)["data"] == client.find(made).json


# The process that fits.

DUE = PendingFit("n", Material(1, b"", None, {}), ())


def script(folder: Path, text: str) -> tuple[str, str]:
    file = folder / "fits.py"
    file.write_text(text)
    return PYTHON, str(file)


def test_a_fit_whose_process_dies_is_begun_again(tmp_path: Path) -> None:
    count = tmp_path / "count"
    dying = (
        f"import os, pathlib\nwith open({str(count)!r}, 'a') as file:\n    file.write('x')\nos.kill(os.getpid(), 9)\n"
    )
    found = asyncio.run(fit(DUE, command=script(tmp_path, dying)))
    assert found.problem == "an internal error; it is in the log of the worker"
    assert count.read_text() == "xxx"


def test_a_fit_ends_with_whoever_waits_for_it(tmp_path: Path) -> None:
    started = tmp_path / "started"
    endless = (
        f"import os, pathlib, time\npathlib.Path({str(started)!r}).write_text(str(os.getpid()))\ntime.sleep(600)\n"
    )

    async def stopped() -> int:
        task = asyncio.create_task(fit(DUE, command=script(tmp_path, endless)))
        while not (started.exists() and started.read_text()):  # noqa: ASYNC110 (a file tells)
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return int(started.read_text())

    pid = asyncio.run(stopped())
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()

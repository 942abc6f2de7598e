"""`callgrade jobs` of calibrations, against a real service with its worker, and a scripted one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service import Client
from service.core.judging.fits.fit import Fit
from service.fits.files import build_file_name
from tests.cli.cli_run import Run
from tests.cli.served import Served, served
from tests.cli.test_jobs_command import batch
from tests.faults.provider import Provider
from tests.labelled import item

ID = "calibration_019aa5b3c4d000112233445566778899"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("service"), Provider(), "calibrate") as running:
        yield running


def test_labelled_items_are_judged_and_fitted_by_a_service(ask: Run, service: Served, tmp_path: Path) -> None:
    with Client(service.url, service.key) as client:
        options = {"repeats": "2", "name": "may", "tags": "team:a", "method": "platt"}
        name = client.calibrations.submit_items([item(n) for n in range(60)], **options).job.id
    watched = ask("watch", name)
    assert watched.code == 0, watched.err
    told = ["completed; 60 labelled items: 120 judged", f"results {name} --output FOLDER"]
    places = [watched.err.index(text) for text in told]
    assert places == sorted(places)
    shown = ask("show", name).out
    assert "120 of 120 done, 2 for each item, with four_step@" in shown
    assert "1 (platt)" in shown
    assert json.loads(ask("show", name, "--format", "json").out)["tags"] == {"team": "a"}
    assert name in ask("list", "--kind", "calibration").out
    assert [one["id"] for one in json.loads(ask("list", "--kind", "calibration", "-f", "json").out)["data"]] == [name]

    fetched = ask("results", name, "--output", "run", "--wait")
    assert fetched.code == 0, fetched.err
    assert {file.name for file in (tmp_path / "run").iterdir()} == {"report.json", "report.md", "report.html", "fits"}
    assert "result_groundedness" in fetched.out
    [fit] = (tmp_path / "run" / "fits").iterdir()
    found = Fit.model_validate_json(fit.read_bytes())
    assert (found.method, found.model, fit.name) == ("platt", "gpt-fine", build_file_name(found))

    cancelled = ask("cancel", name)
    assert "completed" in cancelled.out  # one that has ended stays as it is
    assert ask("resume", name).code == 4
    assert ask("delete", name).code == 0
    gone = ask("show", name)
    assert (gone.code, "no calibration of that id" in gone.err) == (4, True)


def calibration(status: str, done: int = 0, **more: Any) -> bytes:
    """A calibration of five items, two answers each, as the service gives it."""
    nothing = dict.fromkeys(("judge_model", "unanswered", "rubric", "judges"))
    made = {"id": ID, "items": 5, "fits": 0, "reasons": [], "repeats": 2, "method": "auto", "seed": "s"}
    return batch(status, done, **(nothing | made | more))

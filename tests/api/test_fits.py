"""Fits over HTTP: installed from a calibration or as sent, at once in every process, and taken back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.calibration.report_predictions import find_check
from service.core.judging.fits.fit import Fit
from service.core.judging.questions import ASSEMBLY
from service.core.report import STAND_IN
from service.engine import Engine
from service.fits.files import AgingFits
from service.fits.live import RELOAD_INTERVAL_S, LiveFits
from service.registry import Registry
from service.settings import Settings
from service.store.access.audit import Actor, Audit
from service.store.database import Database
from service.store.installed_fits import InstalledFits
from service.wiring import build_demo_judging
from tests.api.asgi_caller import Ask
from tests.api.played_client import PlayedClient
from tests.api.test_calibrations import items
from tests.api.test_labels import body
from tests.faults.clock import Clock
from tests.fits import make_discrimination, make_fit
from tests.tables import DATA, read_yaml

ANA = Actor("key ana", "")

REGISTRY = Registry()
JUDGE = REGISTRY.judges["result_groundedness"]


def fit(**changes: Any) -> Fit:
    """A fit of the judge that answers here, which lets everything pass unless it is changed."""
    bound: dict[str, Any] = {
        "judge": JUDGE.id,
        "judge_digest": JUDGE.digest,
        "criterion": "result_groundedness",
        "model": STAND_IN,
        "assembly": ASSEMBLY,
        "evidence": find_check(REGISTRY.find("four_step"), "result_groundedness").evidence_digest,
        "threshold": 0.25,
    }
    return make_fit(**{**bound, **changes})


def sent(*fits: Fit) -> dict[str, Any]:
    return {"fits": [json.loads(one.model_dump_json()) for one in fits]}


def live(database: Database, clock: Clock, *files: Fit) -> LiveFits:
    return LiveFits(files, InstalledFits(database), max_age_days=0, clock=clock.now)


@pytest.fixture
def processes(ask: Ask, store: Database, clock: Clock) -> tuple[PlayedClient, PlayedClient]:
    """Two processes over one store."""
    clients = [
        PlayedClient(ask, store, engine=Engine(REGISTRY, judging=build_demo_judging(), fits=live(store, clock)))
        for _ in range(2)
    ]
    return clients[0], clients[1]


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "in use"),
        ({"route": "0" * 64}, "made for another route to the model"),
        ({"model": "another"}, "of another model"),
        ({"judge_digest": "0" * 64}, "of another version of the judge"),
    ],
)
def test_a_fit_in_place_says_whether_it_applies(processes: Any, changes: dict[str, Any], state: str) -> None:
    made = processes[0]("POST", "/v1/fits", sent(fit(**changes)))
    assert [one["state"] for one in made.json["data"]] == [state]


@pytest.mark.parametrize("use", ["useless", "inverted", "cannot tell", "never tested"])
def test_the_fit_of_a_judge_that_is_not_useful_is_refused(processes: Any, use: str) -> None:
    found = None if use == "never tested" else make_discrimination(use)
    bad = fit(criterion="other", discrimination=found)
    refused = processes[0]("POST", "/v1/fits", sent(bad)).problem
    assert refused["status"] == 422
    assert f"its judge is {'cannot tell: it was never' if found is None else f'{use}: '}" in str(refused)
    made = processes[0]("POST", "/v1/fits", sent(bad, fit())).json
    assert [one["id"] for one in made["data"]] == [fit().id]
    assert made["warnings"][0].startswith(f"{bad.id}: not installed, because its judge is")
    assert [one["id"] for one in processes[0]("GET", "/v1/fits").json["data"]] == [fit().id]


def verdict(client: PlayedClient) -> tuple[bool, str]:
    """Whether a wrong answer passes, and how that is calibrated."""
    report = client("POST", "/v1/score", body(1, right=False)).json
    [result_groundedness] = [one for one in report["criteria"] if one["id"] == "result_groundedness"]
    outcome = result_groundedness["outcomes"][0]["outcome"]
    return outcome["passed"], outcome["calibration"]["status"]


def test_an_installed_fit_decides_in_every_process(processes: tuple[PlayedClient, PlayedClient], clock: Clock) -> None:
    here, there = processes
    assert verdict(here) == verdict(there) == (False, "uncalibrated")
    made = here("POST", "/v1/fits", sent(fit()))
    assert made.status == 200, made.body
    assert [(one["state"], one["origin"], one["threshold"]) for one in made.json["data"]] == [
        ("in use", "installed", 0.25)
    ]
    assert verdict(here) == (True, "calibrated")
    clock.time += RELOAD_INTERVAL_S
    assert verdict(there) == (True, "calibrated")
    [listed] = there("GET", "/v1/fits").json["data"]
    assert listed == made.json["data"][0]


def test_a_rollback_brings_the_fit_before_back(processes: tuple[PlayedClient, PlayedClient]) -> None:
    here, _ = processes
    first, second = fit(threshold=0.75), fit()
    for one in (first, second, second):
        here("POST", "/v1/fits", sent(one))
    assert verdict(here) == (True, "calibrated")
    assert here("DELETE", f"/v1/fits/{first.id}").problem["status"] == 404
    assert here("DELETE", f"/v1/fits/{second.id}").status == 204
    assert verdict(here) == (False, "calibrated")
    assert here("DELETE", f"/v1/fits/{first.id}").status == 204
    assert verdict(here) == (False, "uncalibrated")
    assert here("GET", "/v1/fits").json == {"data": []}
    acts = [(one.act, one.target) for one in Audit(here.database).page(limit=9).data]
    assert acts[:2] == [("fit.rollback", first.id), ("fit.rollback", second.id)]
    assert acts[2:] == [("fit.install", second.id), ("fit.install", first.id)]


def test_a_file_stays_below_and_cannot_be_taken_away_here(ask: Ask, store: Database, clock: Clock) -> None:
    file = fit(threshold=0.75)
    engine = Engine(REGISTRY, judging=build_demo_judging(), fits=live(store, clock, file))
    client = PlayedClient(ask, store, engine=engine)
    assert client("DELETE", f"/v1/fits/{file.id}").problem["status"] == 409
    client("POST", "/v1/fits", sent(fit()))
    assert [one["origin"] for one in client("GET", "/v1/fits").json["data"]] == ["installed"]
    client("DELETE", f"/v1/fits/{fit().id}")
    assert [one["id"] for one in client("GET", "/v1/fits").json["data"]] == [file.id]


@pytest.mark.usefixtures("forked_python")
def test_the_fits_of_a_calibration_are_installed_by_its_name(ask: Ask, store: Database, clock: Clock) -> None:
    engine = Engine(REGISTRY, judging=build_demo_judging(), fits=live(store, clock))
    client = PlayedClient(ask, store, engine=engine, settings=Settings(batch_chunk=16, batch_max_items=300))
    name = client.submit(items(60), method="platt")["id"]
    assert client("POST", "/v1/fits", {"calibration": name}).problem["status"] == 409
    client.work()
    [one] = client("POST", "/v1/fits", {"calibration": name}).json["data"]
    assert (one["calibration"], one["labels"], one["state"]) == (name, 60, "in use")
    assert verdict(client)[1] == "calibrated"


NONE = "calibration_" + "0" * 32
GOOD = json.loads(make_fit().model_dump_json())
NO_FITS = [
    {},
    {"calibration": "x"},
    {"fits": [{"judge": "j"}]},
    {"calibration": NONE, "fits": [{}]},
    *[{"fits": [{**GOOD, **wrong}]} for wrong in (*read_yaml(DATA / "api" / "fits.yaml"), {"model": "m" * 20_000})],
]


@pytest.mark.parametrize(("wrong", "status"), [({"calibration": NONE}, 404), *[(one, 422) for one in NO_FITS]])
def test_what_is_no_fit_is_refused(
    processes: tuple[PlayedClient, PlayedClient], wrong: dict[str, Any], status: int
) -> None:
    assert processes[0]("POST", "/v1/fits", wrong).problem["status"] == status
    assert processes[0]("GET", "/v1/fits").json == {"data": []}


class _Unreachable:
    def __init__(self) -> None:
        self.reachable = True

    def read_version(self) -> object:
        if not self.reachable:
            raise OSError("away")
        return 1

    def list_fits(self) -> list[Fit]:
        return [fit()]


def test_a_store_out_of_reach_changes_no_verdict(clock: Clock) -> None:
    source = _Unreachable()
    fits = LiveFits([], source, max_age_days=0, clock=clock.now)
    assert list(fits) == [fit()]
    source.reachable = False
    clock.time += RELOAD_INTERVAL_S
    fits.reload()
    assert list(fits) == [fit()]
    assert list(LiveFits([make_fit()], source, max_age_days=0, clock=clock.now)) == [make_fit()]


def test_installed_fits_on_both_databases(database: Database) -> None:
    store = InstalledFits(database)
    before = store.read_version()
    store.install([fit(), make_fit()], calibration="c", by=ANA)
    assert store.read_version() != before
    assert {one.fit.id for one in store.list_in_place()} == {fit().id, make_fit().id}
    store.roll_back(fit().id, by=ANA)
    assert [one.calibration for one in store.list_in_place()] == ["c"]
    assert len(AgingFits(store.list_fits(), max_age_days=0)) == 1

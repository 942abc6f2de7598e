"""Calibrations in the database: made with their material, fitted once, gone with their batch."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa

from service.errors import JobStateError, UnknownJobError
from service.store.database import Database
from service.store.jobs.calibrations import Calibrations, FitOutcome, find_pending_fit
from service.store.jobs.chunks import FINISH
from service.store.jobs.duties import end_job
from service.store.jobs.jobs import Batches
from service.store.jobs.leases import Lease
from service.store.jobs.submission import JobSubmission, Material
from service.store.tables import BATCHES, CALIBRATIONS
from tests.store.played import ended, ends

OPTIONS = {"rubric": None, "judges": None, "judge_model": None, "repeats": 1, "method": "auto", "seed": "s"}
MATERIAL = Material(2, b'{"id":"\xe2\x82\xac"}\n{}', b"{}", OPTIONS)
MADE = FitOutcome('{"version":2}', json.dumps([{"name": "f.json", "fit": {}}]), 1, ("a: nobody there",))


def submitted(database: Database) -> tuple[Calibrations, str]:
    kept = Calibrations(database)
    return kept, kept.submit(JobSubmission(tenant="t", fingerprint="f", hours=1, name="n", material=MATERIAL), []).id


def test_from_material_to_fits(database: Database) -> None:
    kept, name = submitted(database)
    assert ends(database, name) == [name]
    found = find_pending_fit(database, name)
    assert found is not None
    assert (found.name, found.material, found.results) == ("n", MATERIAL, ())
    with pytest.raises(JobStateError, match="the calibration is finalizing"):
        kept.report("t", name)
    ended(database, name, fit_outcome=MADE)
    told = kept.find("t", name)
    assert (told.status, told.unanswered, told.reasons, told.fits, told.reason) == (
        "completed",
        1,
        ("a: nobody there",),
        1,
        None,
    )
    assert (kept.report("t", name), kept.fits("t", name)) == (MADE.report, MADE.fits)
    assert find_pending_fit(database, name) is None
    end_job(
        database, Lease(name, FINISH, 1), fit_outcome=FitOutcome(problem="too late")
    )  # it was ended under this lease
    assert kept.find("t", name) == told


def test_it_is_no_other_kind_and_no_other_tenants(database: Database) -> None:
    kept, name = submitted(database)
    for other in (lambda: kept.find("x", name), lambda: Batches(database).find("t", name)):
        with pytest.raises(UnknownJobError):
            other()
    assert Batches(database).page("t", limit=9).data == ()
    assert [one.id for one in kept.page("t", limit=9).data] == [name]


def test_it_is_forgotten_with_its_batch(database: Database) -> None:
    kept, name = submitted(database)
    ended(database, name, fit_outcome=MADE)
    with database.begin() as connection:
        connection.execute(BATCHES.update().values(ended_at=database.now() - 86_400 * 40))
    assert kept.forget_old(days=30) == 1
    with database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(CALIBRATIONS)).scalar_one() == 0

"""Items of batches, calibrations and sessions of people in the database, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa

from service.errors import JobStateError, UnknownJobError
from service.store.access.keys import Keys
from service.store.access.sessions import Sessions
from service.store.database import Database
from service.store.jobs.calibrations import Calibrations, FitOutcome, find_pending_fit
from service.store.jobs.closing import FINISH
from service.store.jobs.duties import end_job
from service.store.jobs.items import ItemChoice, count_items, count_outcomes, find_item, group_failures, list_items
from service.store.jobs.jobs import Batches
from service.store.jobs.leases import Lease
from service.store.jobs.submission import JobSubmission, Material
from service.store.tables import KEYS, SESSIONS
from tests.store.played import ended, ends
from tests.web.site import build_request, fill

SIZE = 9


@pytest.fixture
def batch(database: Database) -> str:
    """Of nine items those whose number three divides are of another amount, and those that seven divides another tool."""
    return fill(database, [build_request(n) for n in range(SIZE)], tenant="t")


def test_items_are_listed_and_counted(database: Database, batch: str) -> None:
    assert [one.index for one in list_items(database, batch, limit=4).data] == [0, 1, 2, 3]
    rest = list_items(database, batch, limit=9, after=3)
    assert ([one.index for one in rest.data], rest.has_more) == ([4, 5, 6, 7, 8], False)
    failed = ItemChoice(verdict="fail", stage="arguments")
    assert [one.index for one in list_items(database, batch, failed, limit=9).data] == [3, 6]
    assert [count_items(database, batch, one) for one in (failed, ItemChoice(failed="arguments"))] == [2, 4]
    assert count_outcomes(database, batch).total() == SIZE
    assert sum([group.count for group in group_failures(database, batch)]) == 4
    found = find_item(database, batch, 3, failed)
    assert found is not None
    assert (found.previous, found.next, found.custom_id) == (None, 6, "item-3")
    assert find_item(database, batch, SIZE) is None


def test_a_session_is_worth_its_key(database: Database) -> None:
    sessions, keys = Sessions(database), Keys(database)
    local = sessions.create("")
    assert sessions.authenticate(local) is not None
    made, _ = keys.create(name="k", tenant="t", scopes=("score",))
    token = sessions.create(made.id)
    caller = sessions.authenticate(token)
    assert caller is not None
    assert caller.tenant == "t"
    assert sessions.authenticate(local) is None  # there is a key now
    assert sessions.authenticate(token + "x") is None
    keys.revoke(made.id)
    assert sessions.authenticate(token) is None
    expired = keys.create(name="k", tenant="t")[0].id
    token = sessions.create(expired)
    with database.begin() as connection:
        connection.execute(KEYS.update().where(KEYS.c.id == expired).values(expires_at=1.0))
    assert sessions.authenticate(token) is None


def test_a_session_ends(database: Database) -> None:
    sessions = Sessions(database)
    over, kept = sessions.create("", lasts_s=0.0), sessions.create("")
    assert (sessions.authenticate(over), sessions.authenticate(kept) is None) == (None, False)
    sessions.create("")  # which deletes those that are over
    with database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(SESSIONS)).scalar_one() == 2
    sessions.end(kept)
    assert sessions.authenticate(kept) is None


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

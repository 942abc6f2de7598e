"""Items of batches and sessions of people in the database, on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from service.store.access.keys import Keys
from service.store.access.sessions import Sessions
from service.store.database import Database
from service.store.jobs.items import ItemChoice, count_items, count_outcomes, find_item, group_failures, list_items
from service.store.tables import KEYS, SESSIONS
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

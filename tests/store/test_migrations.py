"""Tables of earlier versions are brought up to date with what stands in them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from service.store.database import MIGRATIONS, open_database
from service.store.jobs.batches import Batches
from service.store.tables import CHUNKS
from tests.store.played import Recording

BATCH = {
    "id": "batch_019aa5b3c4d000112233445566778899",
    "total": 2,
    "open_chunks": 1,
    "options": "{}",
    "tags": "{}",
    "rejected": '{"count":0,"lines":[]}',
    "created_at": 1.0,
    "deadline_at": 2.0,
} | dict.fromkeys(("tenant", "name"), "t")
CHUNK = {"batch": BATCH["id"], "size": 2, "payload": b"items", "suspects": "{}", "cost_usd": 0.5} | dict.fromkeys(
    (
        *("number", "first", "done", "under_way", "attempt", "generation", "completed", "failed", "uncertain_usd"),
        *("tokens_in", "tokens_out", "cache_hits", "deaths", "quarantined"),
    ),
    0,
)


def inserted(connection: sa.Connection, table: str, row: dict[str, object]) -> None:
    connection.execute(sa.insert(sa.table(table, *map(sa.column, row))).values(row))


def test_chunks_stay_where_their_questions_are_counted_from_now_on(tmp_path):
    database = open_database(f"sqlite:///{tmp_path / 'store.db'}")
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    with database.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0004")
        inserted(connection, "callgrade_batches", BATCH | {"status": "completed", "serial": False, "kind": "scores"})
        inserted(connection, "callgrade_chunks", CHUNK)
    database.migrate()
    batches = Batches(database, Recording())
    found = batches.find("t", BATCH["id"])
    assert (found.cost_usd, found.questions, found.max_questions) == (0.5, 0, None)
    with database.read() as connection:
        (chunk,) = connection.execute(sa.select(CHUNKS)).all()
        names = [column["name"] for column in sa.inspect(connection).get_columns("callgrade_chunks")]
    assert (chunk.payload, chunk.size, chunk.suspects) == (b"items", 2, "{}")
    assert names.index("questions") < names.index("payload")
    batches.delete("t", BATCH["id"])
    with database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(CHUNKS)).scalar_one() == 0
    database.close()

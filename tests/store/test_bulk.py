"""Many rows in one statement are the rows that were given, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from service.store.bulk import insert_rows
from service.store.database import Database

TABLE = sa.Table(
    "bulk",
    sa.MetaData(),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer),
    sa.Column("ok", sa.Boolean),
    sa.Column("score", sa.Double),
    sa.Column("left_out", sa.Text),
)
NAMES = ("name", "number", "ok", "score")

ROWS = {
    "text that quoting would spoil": [('{"a\\b",NULL}', 1, True, 0.5), ("", 2, False, 1.5), ("é😀'%s?", 3, None, 2.5)],
    "numbers of several sizes and kinds": [("a", 1, True, 1), ("b", 2**31 - 1, True, 0.1), ("c", -70_000, True, None)],
    "columns without any value": [("a", None, None, None), ("b", None, None, None)],
    "no row": [],
}


@pytest.fixture
def table(database: Database) -> Iterator[Database]:
    """A database with the table."""
    with database.begin() as connection:
        TABLE.create(connection)
    yield database
    with database.begin() as connection:
        TABLE.drop(connection)


def read(database: Database) -> list[tuple[object, ...]]:
    with database.read() as connection:
        return [tuple(row) for row in connection.execute(sa.select(TABLE).order_by(TABLE.c.number, TABLE.c.name))]


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_rows_are_as_they_were_given(table: Database, rows: list[tuple[object, ...]]) -> None:
    with table.begin() as connection:
        insert_rows(connection, TABLE, NAMES, rows)
    assert sorted(read(table), key=repr) == sorted([(*row, None) for row in rows], key=repr)


def test_a_key_that_is_taken_is_an_error_or_left_as_it_is(table: Database) -> None:
    with table.begin() as connection:
        insert_rows(connection, TABLE, NAMES, [("a", 1, True, 0.5)])
    again = [("a", 2, False, 0.1), ("b", 3, True, 0.2)]
    with pytest.raises(DBAPIError), table.begin() as connection:
        insert_rows(connection, TABLE, NAMES, again)
    assert len(read(table)) == 1
    with table.begin() as connection:
        insert_rows(connection, TABLE, NAMES, again, keep=True)
    assert read(table) == [("a", 1, True, 0.5, None), ("b", 3, True, 0.2, None)]

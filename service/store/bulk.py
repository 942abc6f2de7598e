"""Insert many rows of one table in one statement: SQLite takes them one by one from C, PostgreSQL as one array per column.

Other inserts spend most of their time binding names to values, row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa

_TYPES: dict[type[sa.types.TypeEngine[Any]], str] = {
    sa.Text: "text",
    sa.Integer: "int4",
    sa.Boolean: "bool",
    sa.Double: "float8",
}


def insert_rows(
    connection: sa.Connection,
    table: sa.Table,
    names: tuple[str, ...],
    rows: Iterable[Sequence[object]],
    *,
    keep: bool = False,
) -> None:
    """Insert rows, each with values for the columns `names`, in that order; other columns stay null.

    `keep`: a row whose key exists is skipped; otherwise it is an error, and nothing is inserted.
    """
    values_by_row = [tuple(row) for row in rows]
    if not values_by_row:
        return
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_write_for_sqlite(table, names, keep), values_by_row)
    else:
        columns = zip(names, zip(*values_by_row, strict=True), strict=True)
        arrays = tuple([_build_array(table.c[name], values) for name, values in columns])
        connection.exec_driver_sql(_write_for_postgres(table, names, keep), arrays)


def _build_array(column: sa.Column[Any], values: tuple[Any, ...]) -> list[Any]:
    """Return the values of a column, all of one type, as an array needs them."""
    if isinstance(column.type, sa.Double):
        return [None if value is None else float(value) for value in values]
    return list(values)


@cache
def _write_for_sqlite(table: sa.Table, names: tuple[str, ...], keep: bool) -> str:  # noqa: FBT001 (a cache key)
    return f"{_begin_insert(table, names)} VALUES ({', '.join('?' * len(names))}){_end_insert(keep)}"


@cache
def _write_for_postgres(table: sa.Table, names: tuple[str, ...], keep: bool) -> str:  # noqa: FBT001 (a cache key)
    arrays = ", ".join(f"%b::{_TYPES[type(table.c[name].type)]}[]" for name in names)  # b: binary, nothing is quoted
    return f"{_begin_insert(table, names)} SELECT * FROM unnest({arrays}){_end_insert(keep)}"  # noqa: S608 (names of ours)


def _begin_insert(table: sa.Table, names: tuple[str, ...]) -> str:
    return f"INSERT INTO {table.name} ({', '.join(names)})"


def _end_insert(keep: bool) -> str:  # noqa: FBT001 (it says what)
    return " ON CONFLICT DO NOTHING" if keep else ""

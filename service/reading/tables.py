"""Read rows of tables as records: CSV and TSV, and Parquet or Arrow where pyarrow is installed.

A cell with JSON is what it encodes; an empty one is absent. Columns are members of the record under their own names, so that a
table of a format's members is read as that format. A table of questions and answers becomes a conversation; the record's note
says which columns were taken for which.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from pydantic import JsonValue

from service.core.json.parsing import parse_or_none
from service.errors import InputError
from service.reading.opening import load_module
from service.reading.places import AnyRecord, BadRecord, RecordPlace, TraceRecord

PARQUET, _ARROW = b"PAR1", b"ARROW1"
MAX_CELL_CHARS = 64 * 2**20
_ROWS_AT_ONCE = 1_024

_ASKED = ("question", "input", "prompt", "query", "user", "user_input", "user_message", "instruction")
_ANSWERED = ("answer", "output", "response", "completion", "assistant", "actual_output", "prediction", "model_output")
_CALLS = ("tool_calls", "tools_called", "calls", "actual_tools")
_WHOLE = frozenset({"messages", "events", "spans", "trace", "contents", "choices", "conversations", "items", "turns"})
"""Columns with a whole conversation: such a table needs no mapping."""


def is_table(name: str, head: bytes) -> bool:
    """Whether a file is a table: by its first bytes, or by its name where it is text."""
    text = name.lower().endswith((".csv", ".tsv")) and head.lstrip()[:1] not in (b"{", b"[")
    return text or head.startswith((PARQUET, _ARROW))


def read_table(
    stream: BinaryIO, name: str, columns: Mapping[str, str], *, group: int | None = None, before: int = 0
) -> Iterator[AnyRecord]:
    """Yield a record for each row, at its line (of a table in text) or its number from 1.

    `columns`: other names for columns, such as {"prompt": "question"}. `group`: the row group of a Parquet file that is read
    alone, with the rows `before` it.
    """
    text = name.lower().endswith((".csv", ".tsv"))
    rows = _read_rows(stream) if text else _read_columns(stream, group, before)
    try:
        for line, row in rows:
            place = RecordPlace(name, line)
            if isinstance(row, str):
                yield BadRecord(place, InputError.at("", row))
            else:
                yield _build_record(place, {columns.get(name, name): value for name, value in row.items()})
    except (csv.Error, UnicodeDecodeError) as error:
        yield BadRecord(RecordPlace(name), InputError.at("", f"not a table in UTF-8: {error}"))


def _read_rows(stream: BinaryIO) -> Iterator[tuple[int, dict[str, JsonValue] | str]]:
    """Iterate over the rows of a table in text, which names its columns in its first line."""
    text = io.TextIOWrapper(stream, "utf-8", newline="")  # pyright: ignore[reportArgumentType] (a buffered reader is one)
    try:
        csv.field_size_limit(MAX_CELL_CHARS)
        first = text.readline()
        delimiter = max("\t;,", key=first.count)
        columns: list[str] = next(csv.reader([first], delimiter=delimiter), list[str]())
        reader = csv.reader(text, delimiter=delimiter)
        begins = 2
        for cells in reader:
            line, begins = begins, reader.line_num + 2
            if len(cells) > len(columns):
                yield line, f"{len(cells)} cells where the first line names {len(columns)} columns"
            elif cells:
                yield line, {name: _parse(cell) for name, cell in zip(columns, cells, strict=False) if cell}
    finally:
        text.detach()


def _parse(cell: str) -> JsonValue:
    value = parse_or_none(cell) if cell.lstrip()[:1] in ("{", "[") else None
    return cell if value is None else value


def _read_columns(stream: BinaryIO, group: int | None, number: int) -> Iterator[tuple[int, dict[str, JsonValue]]]:
    """Iterate over the rows of a Parquet or Arrow file, batch by batch. Raises OSError: pyarrow is not there."""
    purpose = "to read Parquet and Arrow"
    source: Any = stream if stream.seekable() else io.BytesIO(stream.read())
    head = source.read(len(PARQUET))
    source.seek(0)
    if head == PARQUET:
        table = load_module("pyarrow.parquet", purpose).ParquetFile(source)
        batches = table.iter_batches(batch_size=_ROWS_AT_ONCE, row_groups=None if group is None else [group])
    else:
        reader = load_module("pyarrow.ipc", purpose).open_file(source)
        batches = (reader.get_batch(index) for index in range(reader.num_record_batches))
    for batch in batches:
        for row in batch.to_pylist():
            number += 1
            yield number, {name: _convert(value) for name, value in row.items() if value is not None}


def _convert(value: Any) -> JsonValue:
    """Return a cell as JSON: dates and decimals as text, text that is JSON as what it encodes."""
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, dict):
        return {str(name): _convert(one) for name, one in value.items() if one is not None}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return [_convert(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value if isinstance(value, (bool, int, float)) or value is None else str(value)


def _build_record(place: RecordPlace, row: dict[str, JsonValue]) -> TraceRecord:
    """Build the record of a row: as it is if it holds a whole conversation, else a question with its answer."""
    names = {name.strip().lower().replace(" ", "_"): name for name in row}
    asked, answered, calls = _find(names, _ASKED), _find(names, _ANSWERED), _find(names, _CALLS)
    if names.keys() & _WHOLE or asked is None or answered is None:
        return TraceRecord(place, row)
    reply: dict[str, JsonValue] = {"role": "assistant", "content": row[answered]}
    said = [f"{asked} is the question", f"{answered} the answer"]
    if calls is not None:
        reply["tool_calls"] = row[calls]
        said.append(f"{calls} its calls")
    rest = {name: value for name, value in row.items() if name not in (asked, answered, calls)}
    messages: list[JsonValue] = [{"role": "user", "content": row[asked]}, reply]
    return TraceRecord(place, {"messages": messages, **rest}, f"columns: {', '.join(said)}")


def _find(names: Mapping[str, str], wanted: tuple[str, ...]) -> str | None:
    return next((names[name] for name in wanted if name in names), None)

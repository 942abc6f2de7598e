"""Several `key: value` lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from service.core.results.form import Form, Stretch
from service.core.results.lines import Line, iter_lines

MAX_LINE_CHARS = 400
MAX_KEY_WORDS = 5
_LEAD = r"[ \t]{0,12}(?:[-*+\u2022][ \t]{1,3})?(?:\*\*|__|`)?"
_LINE = re.compile(
    _LEAD + r"'?(?P<key>[A-Za-z_][\w ./()%#$&'-]{0,39}?)'?"
    r"(?:(?:\*\*|__|`)?[ \t]{0,20}(?::(?:\*\*|__)?[ \t]{1,40}|[ \t]=[ \t]|=(?!=))|:(?=[^\s/:]))[ \t]{0,20}(?P<value>\S.*)"
)

Pair = tuple[Line, str, str]


def find(text: str) -> Iterator[Stretch]:
    """Find each run of two or more such lines; blank lines between them do not matter.

    A repeated key begins another record. A single such line is a sentence: `Note: the flight is late`.
    """
    run: list[Pair] = []
    for line in iter_lines(text):
        pair = _read_line(line)
        if pair is not None:
            run.append(pair)
        elif line.text.strip():
            yield from _build_stretch(run)
            run = []
    yield from _build_stretch(run)


def _read_line(line: Line) -> Pair | None:
    match = _LINE.fullmatch(line.text.rstrip()) if len(line.text) <= MAX_LINE_CHARS else None
    if match is None:
        return None
    key, value = match["key"].strip(), match["value"].strip().removesuffix(",").strip("`*\"'")
    after_key = line.text[match.end("key") : match.end("key") + 2]
    glued = after_key[:1] == ":" and not after_key[1:].isspace()
    if not value or len(key.split()) > MAX_KEY_WORDS or (" " in key and glued):
        return None
    return line, key, value


def _build_stretch(run: Sequence[Pair]) -> Iterator[Stretch]:
    if len(run) > 1:
        records: list[JsonValue] = [*_iter_records(run)]
        yield Stretch(run[0][0].start, run[-1][0].end, records if records[1:] else records[0])


def _iter_records(run: Sequence[Pair]) -> Iterator[dict[str, JsonValue]]:
    record: dict[str, JsonValue] = {}
    for _, key, value in run:
        if key in record:
            yield record
            record = {}
        record[key] = value
    yield record


FORM = Form("key_values", exact=False, rank=80, find=find)

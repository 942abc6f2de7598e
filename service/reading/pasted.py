"""Turn a pasted text, a log or a request, into the body of POST /v1/score."""

from __future__ import annotations

import io
import json
from collections import Counter
from typing import NamedTuple

from service.errors import InputError
from service.reading.bare_traces import build_body
from service.reading.places import BadRecord, TraceRecord
from service.reading.records import find_traces
from service.reading.span_files import group_spans
from service.reading.strict_json import Limits
from service.reading.trace_files import scan_records


class PastedTrace(NamedTuple):
    """The traces in a text."""

    body: bytes
    """The request of its first trace."""
    guessed: str | None
    """The guessed format; None if the trace names one."""
    others: int
    """How many traces follow the first."""


def read_pasted(text: str, limits: Limits, *, keep: bool) -> PastedTrace:
    """Read the first trace of a text, in any form that files may have; InputError, with places in the text, if there is none.

    `keep`: whether to store its score, whatever the text says.
    """
    source = io.BytesIO(text.strip().encode(errors="replace"))
    records = find_traces(scan_records(source, limits=limits, name="the text"))
    traces = list(group_spans(records, limits, left_out=Counter(), named=None))
    if not traces:
        raise InputError.at("", "the text contains no trace")
    first = traces[0]
    if isinstance(first, BadRecord):
        raise first.error
    guessed: Counter[str] = Counter()
    body = {
        name: value for name, value in build_body(first, named=None, guessed=guessed).items() if name != "custom_id"
    } | {"store": keep}
    others = sum(isinstance(one, TraceRecord) for one in traces[1:])
    return PastedTrace(json.dumps(body).encode(), next(iter(guessed), None), others)

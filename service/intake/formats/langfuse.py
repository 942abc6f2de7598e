"""Langfuse traces with their `observations`, as its API and exports give them; one observation; or a page of them.

GENERATION observations are the exchanges with a model; TOOL observations are tool runs. Without any generation, the
trace's own input and output are the exchange.
"""

from __future__ import annotations

from service.core.json.members import JsonObject, as_text, list_objects
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Format
from service.intake.runs import LoggedRun, locate, read_log
from service.intake.wrapping import WrapperContents

_TYPES = frozenset(
    ["SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"]
)


def _read(record: Cursor) -> WrapperContents:
    entries = list(record.list_nodes("observations" if record.peek("observations") else "data"))
    ids = {as_text(entry.peek("traceId")) for entry in entries} if "data" in record else set[str | None]()
    if len(ids) > 1:
        raise InputError.at("/data", f"expected observations of one trace, not of {len(ids)}: ask for them by traceId")
    runs = [_read_entry(record, outermost=True), *[_read_entry(entry, outermost=False) for entry in entries]]
    return read_log(record.out, runs, as_text(record.peek("id")) or next(iter(ids), None))


def _read_entry(node: Cursor, *, outermost: bool) -> LoggedRun:
    kind = (as_text(node.peek("type")) or "").upper()
    if not outermost and kind not in _TYPES:
        node.leave("an observation of an unknown type", keep=True)
    node.take("toolDefinitions")
    return LoggedRun(
        node,
        "" if outermost else kind,
        locate(node, "input"),
        locate(node, "output"),
        "" if outermost else as_text(node.peek("startTime")) or "",
        outermost,
        as_text(node.peek("name")) or "",
        error_path=f"{node.path}/level" if node.peek("level") == "ERROR" else "",
    )


def _recognise(record: JsonObject) -> bool:
    of_span = {"spanId", "span_id", "attributes"}
    return isinstance(record.get("observations"), list) or any(
        "traceId" in one and "input" in one and not one.keys() & of_span
        for one in (record, *list_objects(record.get("data")))
    )


FORMATS = (
    Format(
        name="langfuse",
        read=_read,
        recognise=_recognise,
        score=83,
        summary="A Langfuse trace with its observations, one observation, or a page of one trace's observations.",
        hint="observations, or a traceId with input",
    ),
)

"""Langfuse traces with their `observations`, as its API and exports give them; one observation; or a page of them.

GENERATION observations are the exchanges with a model; TOOL observations are tool runs. Without any generation, the
trace's own input and output are the exchange.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, find_text, list_objects, read_type
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.format import Format
from service.intake.shapes import OPEN, Loose
from service.intake.texts import parse_text
from service.intake.unread_parts.members import note_losses, note_unread_value
from service.intake.wrapping import Exchange, ToolRun, WrapperContents, list_other_members


@with_config(OPEN)
class LangfuseTrace(TypedDict):
    """A trace with its observations, one observation, or a page of one trace's observations."""

    format: Literal["langfuse"]
    id: NotRequired[str | None]
    input: NotRequired[Loose]
    output: NotRequired[Loose]
    observations: NotRequired[list[dict[str, Loose]] | None]
    data: NotRequired[list[dict[str, Loose]] | None]


PARSED_MEMBERS = ("input", "output", "observations", "data", "toolDefinitions")

TYPES = frozenset(
    ["SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"]
)


def read(record: LangfuseTrace) -> WrapperContents:
    """Read the exchanges of a validated record. Raises InputError: a page with observations of several traces."""
    notes = Transcript()
    entries = sorted(_list_entries(record), key=lambda entry: find_text(entry[0], "startTime") or "")
    note_losses(notes, record, "", PARSED_MEMBERS)
    for entry, path in entries:
        note_losses(notes, entry, path, PARSED_MEMBERS)
        if _read_type(entry) not in TYPES:
            note_unread_value(notes, entry, path, "an observation of an unknown type")
    generations = [_build_exchange(entry, path) for entry, path in entries if _read_type(entry) == "GENERATION"]
    runs = [ToolRun(find_text(entry, "name") or "", path) for entry, path in entries if _read_type(entry) == "TOOL"]
    raw: JsonObject = record  # pyright: ignore[reportAssignmentType] (a validated record is JSON)
    places = [(raw, ""), *entries]
    extra_values = [
        (parse_text(entry.get(name)), f"{path}/{name}")
        for entry, path in places
        if (_read_type(entry) != "GENERATION" if path else generations)
        for name in ("input", "output")
    ]
    packed_values = [one for entry, path in places for one in list_other_members(entry, path, *PARSED_MEMBERS)]
    return WrapperContents(
        generations or [_build_exchange(raw, "")],
        runs,
        record.get("id") or _find_trace(record),
        notes,
        extra_values,
        packed_values,
    )


def _list_entries(record: LangfuseTrace) -> Iterator[tuple[JsonObject, str]]:
    key = "observations" if record.get("observations") else "data"
    for index, entry in enumerate(record.get(key) or ()):
        yield entry, f"/{key}/{index}"


def _find_trace(record: LangfuseTrace) -> str | None:
    """Return the trace that all observations of a page belong to."""
    ids = {find_text(entry, "traceId") for entry in record.get("data") or ()}
    if len(ids) > 1:
        raise InputError.at("/data", f"expected observations of one trace, not of {len(ids)}: ask for them by traceId")
    return next(iter(ids), None)


def _read_type(entry: JsonObject) -> str:
    return read_type(entry).upper()


def _build_exchange(entry: JsonObject, path: str) -> Exchange:
    """Build the exchange of an entry. File exports write input and output as JSON text."""
    raw: JsonValue = parse_text(entry.get("input"))
    error_path = f"{path}/level" if entry.get("level") == "ERROR" else ""
    return Exchange(raw, f"{path}/input", parse_text(entry.get("output")), f"{path}/output", error_path=error_path)


def _recognise(record: JsonObject) -> bool:
    page = record.get("data")
    return isinstance(record.get("observations"), list) or any(map(_is_observation, [record, *list_objects(page)]))


def _is_observation(raw: JsonObject) -> bool:
    """Whether an object has an observation's trace and input, and is not a span."""
    return "traceId" in raw and "input" in raw and not raw.keys() & {"spanId", "span_id", "attributes"}


FORMAT = Format(LangfuseTrace, read, _recognise, rank=17, hint="observations, or a traceId beside input", place=22)

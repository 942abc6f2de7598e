"""Langfuse traces with their `observations`, as its API and exports give them; one observation; or a page of them.

GENERATION observations are the exchanges with a model; TOOL observations are tool runs. Without any generation, the
trace's own input and output are the exchange.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.errors import InputError
from service.intake.accounting import account_members, lose_value, members_of
from service.intake.build import Transcript
from service.intake.format import Format
from service.intake.shapes import OPEN, Loose
from service.intake.speech import Given, find_text, list_objects
from service.intake.texts import parse_text
from service.intake.wrapping import Exchange, ToolRun, Wrapped, list_beside


@with_config(OPEN)
class LangfuseTrace(TypedDict):
    """A trace with its observations, one observation, or a page of one trace's observations."""

    format: Literal["langfuse"]
    id: NotRequired[str | None]
    input: NotRequired[Loose]
    output: NotRequired[Loose]
    observations: NotRequired[list[dict[str, Loose]] | None]
    data: NotRequired[list[dict[str, Loose]] | None]


ENTRY = members_of(
    "an observation",
    "id format type name input output observations data",
    "meta timestamp startTime endTime completionStartTime createdAt updatedAt traceId parentObservationId projectId environment "
    "level statusMessage model modelId modelParameters internalModelId usage usageDetails costDetails totalCost latency "
    "timeToFirstToken inputPrice outputPrice totalPrice calculatedInputCost calculatedOutputCost calculatedTotalCost "
    "promptId promptName promptVersion unit version release metadata tags public bookmarked scores userId sessionId "
    "externalId htmlPath inputUsage outputUsage totalUsage promptTokens completionTokens totalTokens usagePricingTierId "
    "usagePricingTierName toolDefinitions toolCalls toolCallNames",
)


READ = ("input", "output", "observations", "data", "toolDefinitions")

TYPES = frozenset(
    ["SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"]
)


def read(record: LangfuseTrace) -> Wrapped:
    """Read the exchanges of a validated record. Raises InputError: a page with observations of several traces."""
    lost = Transcript()
    entries = sorted(_list_entries(record), key=lambda entry: find_text(entry[0], "startTime") or "")
    account_members(lost, record, ENTRY, "")
    for entry, path in entries:
        account_members(lost, entry, ENTRY, path)
        if _type(entry) not in TYPES:
            lose_value(lost, entry, path, "an observation of an unknown type")
    generations = [_exchange(entry, path) for entry, path in entries if _type(entry) == "GENERATION"]
    runs = [ToolRun(find_text(entry, "name") or "", path) for entry, path in entries if _type(entry) == "TOOL"]
    given: Given = record  # pyright: ignore[reportAssignmentType] (a validated record is JSON)
    places = [(given, ""), *entries]
    rest = [
        (parse_text(entry.get(name)), f"{path}/{name}")
        for entry, path in places
        if (_type(entry) != "GENERATION" if path else generations)
        for name in ("input", "output")
    ]
    beside = [one for entry, path in places for one in list_beside(entry, ENTRY, path, *READ)]
    return Wrapped(
        generations or [_exchange(given, "")], runs, record.get("id") or _find_trace(record), lost, rest, beside
    )


def _list_entries(record: LangfuseTrace) -> Iterator[tuple[Given, str]]:
    key = "observations" if record.get("observations") else "data"
    for index, entry in enumerate(record.get(key) or ()):
        yield entry, f"/{key}/{index}"


def _find_trace(record: LangfuseTrace) -> str | None:
    """Return the trace that all observations of a page belong to."""
    ids = {find_text(entry, "traceId") for entry in record.get("data") or ()}
    if len(ids) > 1:
        raise InputError.at("/data", f"expected observations of one trace, not of {len(ids)}: ask for them by traceId")
    return next(iter(ids), None)


def _type(entry: Given) -> str:
    return str(entry.get("type")).upper()


def _exchange(entry: Given, path: str) -> Exchange:
    """Build the exchange of an entry. File exports write input and output as JSON text."""
    given: JsonValue = parse_text(entry.get("input"))
    failed_at = f"{path}/level" if entry.get("level") == "ERROR" else ""
    return Exchange(given, f"{path}/input", parse_text(entry.get("output")), f"{path}/output", failed_at=failed_at)


def _recognise(record: Given) -> bool:
    page = record.get("data")
    return isinstance(record.get("observations"), list) or any(map(_is_observation, [record, *list_objects(page)]))


def _is_observation(given: Given) -> bool:
    """Whether an object has an observation's trace and input, and is not a span."""
    return "traceId" in given and "input" in given and not given.keys() & {"spanId", "span_id", "attributes"}


FORMAT = Format(LangfuseTrace, read, _recognise, rank=17, marks="observations, or a traceId beside input", place=22)

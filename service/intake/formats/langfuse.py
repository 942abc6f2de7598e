"""Langfuse's traces with their `observations`, as its API and its exports give them, or one observation.

Observations of the type GENERATION are the exchanges with a model, those of the type TOOL its tools' work. Where there is no
generation the trace's own input and output are the exchange.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.intake.accounting import account_members, lose_value, members_of
from service.intake.build import Transcript
from service.intake.format import Format
from service.intake.shapes import OPEN, Loose
from service.intake.speech import Given, find_text
from service.intake.texts import parse_text
from service.intake.wrapping import Exchange, ToolRun, Wrapped


@with_config(OPEN)
class LangfuseTrace(TypedDict):
    """A trace with its observations, or one observation."""

    format: Literal["langfuse"]
    id: NotRequired[str | None]
    input: NotRequired[Loose]
    output: NotRequired[Loose]
    observations: NotRequired[list[dict[str, Loose]] | None]


ENTRY = members_of(
    "an observation",
    "id format type name input output observations",
    "timestamp startTime endTime completionStartTime createdAt updatedAt traceId parentObservationId projectId environment "
    "level statusMessage model modelId modelParameters internalModelId usage usageDetails costDetails totalCost latency "
    "timeToFirstToken inputPrice outputPrice totalPrice calculatedInputCost calculatedOutputCost calculatedTotalCost "
    "promptId promptName promptVersion unit version release metadata tags public bookmarked scores userId sessionId "
    "externalId htmlPath inputUsage outputUsage totalUsage promptTokens completionTokens totalTokens usagePricingTierId "
    "usagePricingTierName toolDefinitions toolCalls toolCallNames",
)


TYPES = frozenset(
    ["SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"]
)


def read(record: LangfuseTrace) -> Wrapped:
    """The exchanges of a validated record."""
    lost = Transcript()
    entries = sorted(_list_entries(record), key=lambda entry: find_text(entry[0], "startTime") or "")
    account_members(lost, record, ENTRY, "")
    for entry, path in entries:
        account_members(lost, entry, ENTRY, path)
        if _type(entry) not in TYPES:
            lose_value(lost, entry, path, "an observation of an unknown type")
    generations = [_exchange(entry, path) for entry, path in entries if _type(entry) == "GENERATION"]
    runs = [ToolRun(find_text(entry, "name") or "", path) for entry, path in entries if _type(entry) == "TOOL"]
    whole = [_exchange(record, "")]  # pyright: ignore[reportArgumentType] (a validated record is JSON)
    rest = [
        (parse_text(entry.get(name)), f"{path}/{name}")
        for entry, path in entries
        if _type(entry) != "GENERATION"
        for name in ("input", "output")
    ]
    return Wrapped(generations or whole, runs, record.get("id"), lost, rest)


def _list_entries(record: LangfuseTrace) -> Iterator[tuple[Given, str]]:
    for index, entry in enumerate(record.get("observations") or ()):
        yield entry, f"/observations/{index}"


def _type(entry: Given) -> str:
    return str(entry.get("type")).upper()


def _exchange(entry: Given, path: str) -> Exchange:
    """Exports to files write input and output as JSON in a text."""
    given: JsonValue = parse_text(entry.get("input"))
    return Exchange(given, f"{path}/input", parse_text(entry.get("output")), f"{path}/output")


def _recognise(record: Given) -> bool:
    return isinstance(record.get("observations"), list) or ("traceId" in record and "input" in record)


FORMAT = Format(LangfuseTrace, read, _recognise, rank=17, marks="observations, or a traceId beside input", place=22)

"""MLflow traces as `trace.to_json()` writes them: `info` and `data`, whose `spans` have inputs and outputs.

Spans of the types CHAT_MODEL and LLM are the exchanges with a model; those of the type TOOL are tool runs. Without any
model span, the outermost span is the exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Literal, NamedTuple, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.pointers import escape_token
from service.intake.accounting import account_members, looks_like_call, members_of
from service.intake.build import Transcript
from service.intake.format import Format
from service.intake.shapes import OPEN, Loose
from service.intake.speech import Given, find_object, find_text
from service.intake.texts import parse_text
from service.intake.wrapping import Exchange, ToolRun, Wrapped, list_beside


@with_config(OPEN)
class MlflowData(TypedDict):
    """The content of a trace."""

    spans: list[dict[str, Loose]]


@with_config(OPEN)
class MlflowTrace(TypedDict):
    """An MLflow trace, version 2 or 3."""

    format: Literal["mlflow"]
    info: NotRequired[dict[str, Loose] | None]
    data: MlflowData


RECORD = members_of("the trace", "format info data")
DATA = members_of("the data", "spans", "request response")
SPAN = members_of(
    "a span",
    "name span_type inputs outputs attributes start_time_unix_nano",
    "trace_id span_id parent_span_id parent_id context start_time end_time end_time_unix_nano events status status_code "
    "status_message links type kind request_id",
)


INPUTS = ("mlflow.spanInputs", "inputs")
OUTPUTS = ("mlflow.spanOutputs", "outputs")


class MlflowSpan(NamedTuple):
    """A span and its pointer."""

    given: Given
    path: str

    def find(self, attribute: str, *members: str) -> tuple[JsonValue, str]:
        """Return the value of MLflow's attribute, or of the first of these members, with its pointer; null without
        any.
        """
        attributes = find_object(self.given, "attributes")
        if attribute in attributes:
            return parse_text(attributes[attribute]), f"{self.path}/attributes/{escape_token(attribute)}"
        name = next((name for name in members if name in self.given), "")
        return parse_text(self.given.get(name)), f"{self.path}/{name}"


def read(record: MlflowTrace) -> Wrapped:
    """Read the exchanges of a validated record."""
    lost = Transcript()
    account_members(lost, record, RECORD, "")
    account_members(lost, record["data"], DATA, "/data")
    spans = [MlflowSpan(span, f"/data/spans/{index}") for index, span in enumerate(record["data"]["spans"])]
    for span in spans:
        account_members(lost, span.given, SPAN, span.path)
        if looks_like_call(span.given):
            lost.lose("call", span.path, "a span that is a call")
    spans.sort(key=_start)
    tools = [ToolRun(find_text(span.given, "name") or "", span.path) for span in spans if _type(span) == "TOOL"]
    speaking = [span for span in spans if _type(span) in ("CHAT_MODEL", "LLM")] or _find_outermost(spans)
    exchanges = [_exchange(span) for span in speaking]
    read = {place for one in exchanges for place in (one.given_at, one.reply_at)}
    rest = [found for span in spans for names in (INPUTS, OUTPUTS) if (found := span.find(*names))[1] not in read]
    read |= {path for _, path in rest}
    info = record.get("info") or {}
    beside: list[tuple[JsonValue, str]] = [(info, "/info"), *list_beside(record["data"], DATA, "/data", "spans")]  # pyright: ignore[reportArgumentType] (a validated record is JSON)
    beside += [one for span in spans for one in _list_beside(span, read)]
    return Wrapped(exchanges, tools, _id(info), lost, rest, beside)


def _list_beside(span: MlflowSpan, read: Set[str]) -> Iterator[tuple[JsonValue, str]]:
    """Iterate over a span's members and attributes, except those at pointers that are read."""
    yield from (one for one in list_beside(span.given, SPAN, span.path, "attributes") if one[1] not in read)
    attributes, path = find_object(span.given, "attributes"), f"{span.path}/attributes"
    yield {name: value for name, value in attributes.items() if f"{path}/{escape_token(name)}" not in read}, path


def _id(info: Given) -> str | None:
    return find_text(info, "trace_id", "request_id")


def _start(span: MlflowSpan) -> float:
    given = next((span.given[name] for name in ("start_time_unix_nano", "start_time") if name in span.given), 0)
    return float(given) if isinstance(given, (int, float, str)) and str(given).isdigit() else 0.0


def _type(span: MlflowSpan) -> str:
    return str(span.find("mlflow.spanType", "span_type", "type")[0]).upper()


def _find_outermost(spans: Sequence[MlflowSpan]) -> Sequence[MlflowSpan]:
    return [span for span in spans if not find_text(span.given, "parent_span_id", "parent_id")][:1]


def _exchange(span: MlflowSpan) -> Exchange:
    given, reply = span.find(*INPUTS), span.find(*OUTPUTS)
    if given[0] is None and reply[0] is None:
        given = span.find("mlflow.chat.messages")
    return Exchange(*given, *reply, *span.find("mlflow.chat.tools"), failed_at=_find_failure(span))


def _find_failure(span: MlflowSpan) -> str:
    """Return the pointer of what says that a span failed; "" if it did not."""
    status = find_text(span.given, "status_code") or find_text(find_object(span.given, "status"), "code") or ""
    name = "status_code" if "status_code" in span.given else "status"
    return f"{span.path}/{name}" if status.rpartition("_")[2].upper() == "ERROR" else ""


def _recognise(record: Given) -> bool:
    return isinstance(find_object(record, "data").get("spans"), list)


FORMAT = Format(MlflowTrace, read, _recognise, rank=18, marks="spans below data", place=23)

"""MLflow's traces as `trace.to_json()` writes them: `info` and `data`, whose `spans` have inputs and outputs.

Spans of the types CHAT_MODEL and LLM are the exchanges with a model, those of the type TOOL its tools' work. Where there are
none of a model, the outermost span is the exchange.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.pointers import escape_token
from service.intake.accounting import account_members, looks_like_call, lose_calls, members_of
from service.intake.build import Transcript
from service.intake.format import Format
from service.intake.shapes import OPEN, Loose
from service.intake.speech import Given, find_object, find_text
from service.intake.texts import parse_text
from service.intake.wrapping import Exchange, ToolRun, Wrapped


@with_config(OPEN)
class MlflowData(TypedDict):
    """What a trace consists of."""

    spans: list[dict[str, Loose]]


@with_config(OPEN)
class MlflowTrace(TypedDict):
    """A trace of MLflow, version 2 or 3."""

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


class Span(NamedTuple):
    """A span and its pointer."""

    given: Given
    path: str

    def find(self, attribute: str, *members: str) -> tuple[JsonValue, str]:
        """The value of MLflow's attribute or of one of these members, with its pointer; null where the span has none."""
        attributes = find_object(self.given, "attributes")
        if attribute in attributes:
            return parse_text(attributes[attribute]), f"{self.path}/attributes/{escape_token(attribute)}"
        name = next((name for name in members if name in self.given), "")
        return parse_text(self.given.get(name)), f"{self.path}/{name}"


def read(record: MlflowTrace) -> Wrapped:
    """The exchanges of a validated record."""
    lost = Transcript()
    account_members(lost, record, RECORD, "")
    account_members(lost, record["data"], DATA, "/data")
    spans = [Span(span, f"/data/spans/{index}") for index, span in enumerate(record["data"]["spans"])]
    for span in spans:
        account_members(lost, span.given, SPAN, span.path)
        if looks_like_call(span.given):
            lost.lose("call", span.path, "a span that is a call")
        for name in ("context", "status", "links", "events"):
            lose_calls(lost, span.given.get(name), f"{span.path}/{name}", "a span")
    spans.sort(key=_start)
    models = [_exchange(span) for span in spans if _type(span) in ("CHAT_MODEL", "LLM")]
    tools = [ToolRun(find_text(span.given, "name") or "", span.path) for span in spans if _type(span) == "TOOL"]
    rest = [
        span.find(*names)
        for span in spans
        if _type(span) not in ("CHAT_MODEL", "LLM")
        for names in (("mlflow.spanInputs", "inputs"), ("mlflow.spanOutputs", "outputs"))
    ]
    info = record.get("info") or {}
    lose_calls(lost, info, "/info", "the trace's info")
    return Wrapped(models or [_exchange(span) for span in _find_outermost(spans)], tools, _id(info), lost, rest)


def _id(info: Given) -> str | None:
    return find_text(info, "trace_id", "request_id")


def _start(span: Span) -> float:
    given = next((span.given[name] for name in ("start_time_unix_nano", "start_time") if name in span.given), 0)
    return float(given) if isinstance(given, (int, float, str)) and str(given).isdigit() else 0.0


def _type(span: Span) -> str:
    return str(span.find("mlflow.spanType", "span_type", "type")[0]).upper()


def _find_outermost(spans: Sequence[Span]) -> Sequence[Span]:
    return [span for span in spans if not find_text(span.given, "parent_span_id", "parent_id")][:1]


def _exchange(span: Span) -> Exchange:
    given = span.find("mlflow.spanInputs", "inputs")
    return Exchange(*given, *span.find("mlflow.spanOutputs", "outputs"), *span.find("mlflow.chat.tools"))


def _recognise(record: Given) -> bool:
    return isinstance(find_object(record, "data").get("spans"), list)


FORMAT = Format(MlflowTrace, read, _recognise, rank=18, marks="spans below data", place=23)

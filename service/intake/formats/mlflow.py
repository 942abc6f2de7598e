"""MLflow traces as `trace.to_json()` writes them: `info` and `data`, whose `spans` have inputs and outputs.

Spans of the types CHAT_MODEL and LLM are the exchanges with a model; those of the type TOOL are tool runs. Without any
model span, the outermost span is the exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Literal, NamedTuple, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, as_text, find_object, find_text
from service.core.json.pointers import escape_token
from service.intake.build import Transcript
from service.intake.format import Format
from service.intake.shapes import OPEN, Loose
from service.intake.texts import parse_text
from service.intake.unread_parts.members import define_members, note_losses, note_unread_members
from service.intake.unread_parts.suspects import looks_like_call
from service.intake.wrapping import Exchange, ToolRun, WrapperContents, list_other_members


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


RECORD = define_members("the trace", "format info data")


INPUTS = ("mlflow.spanInputs", "inputs")
OUTPUTS = ("mlflow.spanOutputs", "outputs")


class MlflowSpan(NamedTuple):
    """A span and its pointer."""

    raw: JsonObject
    path: str

    def find(self, attribute: str, *members: str) -> tuple[JsonValue, str]:
        """Return the value of MLflow's attribute, else of the first of these members; null if absent. Adds its pointer."""
        attributes = find_object(self.raw, "attributes")
        if attribute in attributes:
            return parse_text(attributes[attribute]), f"{self.path}/attributes/{escape_token(attribute)}"
        name = next((name for name in members if name in self.raw), "")
        return parse_text(self.raw.get(name)), f"{self.path}/{name}"


def read(record: MlflowTrace) -> WrapperContents:
    """Read the exchanges of a validated record."""
    notes = Transcript()
    note_unread_members(notes, record, RECORD, "")
    spans = [MlflowSpan(span, f"/data/spans/{index}") for index, span in enumerate(record["data"]["spans"])]
    for span in spans:
        note_losses(notes, span.raw, span.path, ("attributes", "inputs", "outputs"))
        if looks_like_call(span.raw):
            notes.note_unread("call", span.path, "a span that is a call")
    spans.sort(key=_read_start)
    tools = [ToolRun(find_text(span.raw, "name") or "", span.path) for span in spans if _read_type(span) == "TOOL"]
    models = [span for span in spans if _read_type(span) in ("CHAT_MODEL", "LLM")] or _find_outermost(spans)
    exchanges = [_build_exchange(span) for span in models]
    read = {place for one in exchanges for place in (one.input_path, one.reply_path)}
    extra_values = [
        found for span in spans for names in (INPUTS, OUTPUTS) if (found := span.find(*names))[1] not in read
    ]
    read |= {path for _, path in extra_values}
    info = record.get("info") or {}
    packed_values: list[tuple[JsonValue, str]] = [
        (info, "/info"),
        *list_other_members(record["data"], "/data", "spans"),  # pyright: ignore[reportArgumentType] (a validated record is JSON)
    ]
    packed_values += [one for span in spans for one in _list_other_values(span, read)]
    return WrapperContents(
        exchanges, tools, find_text(info, "trace_id", "request_id"), notes, extra_values, packed_values
    )


def _list_other_values(span: MlflowSpan, read: Set[str]) -> Iterator[tuple[JsonValue, str]]:
    """Iterate over a span's members and attributes, except those at pointers that are read."""
    yield from (one for one in list_other_members(span.raw, span.path, "attributes") if one[1] not in read)
    attributes, path = find_object(span.raw, "attributes"), f"{span.path}/attributes"
    yield {name: value for name, value in attributes.items() if f"{path}/{escape_token(name)}" not in read}, path


def _read_start(span: MlflowSpan) -> float:
    raw = next((span.raw[name] for name in ("start_time_unix_nano", "start_time") if name in span.raw), 0)
    return float(raw) if isinstance(raw, (int, float, str)) and str(raw).isdigit() else 0.0


def _read_type(span: MlflowSpan) -> str:
    return (as_text(span.find("mlflow.spanType", "span_type", "type")[0]) or "").upper()


def _find_outermost(spans: Sequence[MlflowSpan]) -> Sequence[MlflowSpan]:
    return [span for span in spans if not find_text(span.raw, "parent_span_id", "parent_id")][:1]


def _build_exchange(span: MlflowSpan) -> Exchange:
    raw, reply = span.find(*INPUTS), span.find(*OUTPUTS)
    if raw[0] is None and reply[0] is None:
        raw = span.find("mlflow.chat.messages")
    return Exchange(*raw, *reply, *span.find("mlflow.chat.tools"), error_path=_find_failure(span))


def _find_failure(span: MlflowSpan) -> str:
    """Return the pointer of what says that a span failed; "" if it did not."""
    status = find_text(span.raw, "status_code") or find_text(find_object(span.raw, "status"), "code") or ""
    name = "status_code" if "status_code" in span.raw else "status"
    return f"{span.path}/{name}" if status.rpartition("_")[2].upper() == "ERROR" else ""


def _recognise(record: JsonObject) -> bool:
    return isinstance(find_object(record, "data").get("spans"), list)


FORMAT = Format(MlflowTrace, read, _recognise, rank=18, hint="spans below data", place=23)

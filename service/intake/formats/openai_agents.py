"""A trace of the OpenAI Agents SDK: what its processors export, the trace and its spans, in `lines`.

A span of the type `generation` holds an exchange with a model. One of the type `response` holds only its id: where the
trace has no other, the calls and results are those of the `function` spans, and what the model said is missing.
"""

from __future__ import annotations

from service.core.json.members import JsonObject, as_text, find_object, find_text
from service.core.trace import ToolResult
from service.errors import InputError
from service.intake.calls import build_tool_call
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools, recognise_lines
from service.intake.runs import LoggedRun, locate, read_log
from service.intake.texts import parse_text
from service.intake.wrapping import WrapperContents

_IDLE = frozenset(
    ["agent", "handoff", "guardrail", "custom", "mcp_tools", "task", "turn", "speech", "speech_group", "transcription"]
)
"""Types of spans that hold neither calls nor replies."""


def _read(record: Cursor) -> Tools | WrapperContents:
    lines = record.list_nodes("lines")
    spans = [line for line in lines if line.peek("object") == "trace.span"]
    record.out.id = next((name for line in lines if (name := _name_session(line.members))), None)
    if any(_name_kind(span.members) == "generation" for span in spans):
        return read_log(record.out, [_read_span(span) for span in spans], record.out.id)
    for span in sorted(spans, key=lambda span: as_text(span.peek("started_at")) or ""):
        body, kind = span.child("span_data", of="a span"), _name_kind(span.members)
        if kind == "function":
            if not (name := body.text("name")):
                raise InputError.at(body.path, 'a span needs a name, such as "get_order"')
            record.out.call(build_tool_call(None, name, parse_text(body.take("input"))))
            failure = span.child("error").text("message")
            record.out.answer(ToolResult(failure or parse_text(body.take("output")), bool(failure)))
        elif kind == "response":
            record.out.miss_reply(body.path, "a response of which the trace holds only the id")
        elif kind not in _IDLE:
            body.leave("a span of an unknown type", holds="call")
    return None


def _read_span(span: Cursor) -> LoggedRun:
    body, kind = span.child("span_data", of="a span"), _name_kind(span.members)
    if kind == "response":
        body.drop()
        span.leave("a response of which the trace holds only the id", holds="text")
    return LoggedRun(
        body,
        kind,
        locate(body, "input"),
        locate(body, "output"),
        as_text(span.peek("started_at")) or "",
        span.peek("parent_id") is None,
        body.text("name"),
        error_path=f"{span.path}/error" if span.peek("error") else "",
    )


def _name_kind(span: JsonObject) -> str:
    return find_text(find_object(span, "span_data"), "type") or ""


def _name_session(line: JsonObject) -> str | None:
    """Return the trace that a line belongs to; None if it is no line of one."""
    if line.get("object") == "trace.span":
        return find_text(line, "trace_id")
    return find_text(line, "id") if line.get("object") == "trace" else None


FORMATS = (
    Format(
        name="openai_agents",
        read=_read,
        recognise=recognise_lines(_name_session),
        score=95,
        summary="A trace of the OpenAI Agents SDK: a file of its trace and spans, or `lines`.",
        hint="lines whose object is trace or trace.span",
        session=_name_session,
    ),
)

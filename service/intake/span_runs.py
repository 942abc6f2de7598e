"""Calls as the spans of tools tell them."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.text import UnreadableError, parse
from service.core.trace import ToolCall, ToolResult
from service.intake.build import tool_call
from service.intake.otlp import Span, kind
from service.intake.span_messages import HIDDEN, call_of, content_of

_TOOLS = frozenset({"TOOL", "EXECUTE_TOOL"})
_LONGEST_LITERAL = 100_000


class Run(NamedTuple):
    """A call as its tool's span tells it. `output` is None where it was not captured."""

    span: Span
    call: ToolCall
    output: ToolResult | None

    def result(self, in_message: ToolResult | None = None) -> ToolResult | None:
        """What the tool returned; `in_message` is what a message says of it."""
        if self.output is not None:
            return ToolResult(
                self.output.content, self.output.is_error or (in_message is not None and in_message.is_error)
            )
        if self.span.failed:
            return ToolResult(in_message.content if in_message else self.span.message, True)
        return in_message


def runs_of(spans: Iterable[Span]) -> list[Run]:
    """The calls that spans tell of, in their order, but for those that an exporter made up."""
    named = [(span, name) for span in spans if (name := _tool_name(span)) is not None]
    return [_run(span, name) for span, name in named if not _is_synthesised(span)]


def _tool_name(span: Span) -> str | None:
    for name in ("gen_ai.tool.name", "tool.name"):
        value = span.get(name)
        if isinstance(value, str) and value:
            return value
    return (span.name.removeprefix("execute_tool ") or None) if kind(span) in _TOOLS else None


def _is_synthesised(span: Span) -> bool:
    return str(span.get("tool.synthesized") or "false").lower() not in ("false", "0")


def _run(span: Span, name: str) -> Run:
    output, answered = _output(span)
    given = span.get("gen_ai.tool.call.id") or span.get("tool.id") or answered
    call_id = given if isinstance(given, str) else None
    arguments = span.get("gen_ai.tool.call.arguments")
    if arguments is not None:
        return Run(span, call_of(call_id, name, {"arguments": arguments}, "arguments", span.path), output)
    given = span.get("input.value")
    if given is None or given == HIDDEN:
        return Run(span, ToolCall(call_id, name, None, captured=False), output)
    return Run(span, _input(call_id, name, given), output)


def _input(call_id: str | None, name: str, given: JsonValue) -> ToolCall:
    """A call from its `input.value`, which some exporters write as Python would: that is their doing, not the model's."""
    call = tool_call(call_id, name, given)
    literal = _literal(given) if call.arguments is None and isinstance(given, str) else None
    return call if literal is None else replace(call, arguments=literal, problem=None)


def _literal(text: str) -> dict[str, JsonValue] | None:
    """The object that a Python literal spells.

    >>> _literal("{'a': [1, None], 'b': (True,)}"), _literal("{'a': b}"), _literal("{1}"), _literal("[" * 999)
    ({'a': [1, None], 'b': [True]}, None, None, None)
    """
    if len(text) > _LONGEST_LITERAL or "\\" in text:  # an unknown escape makes Python warn
        return None
    try:
        value = parse(json.dumps(ast.literal_eval(text.strip()), allow_nan=False))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _output(span: Span) -> tuple[ToolResult | None, JsonValue]:
    """What the span says the tool returned, and the id that stands in it, where it is a message of the tool's role."""
    given = span.get("gen_ai.tool.call.result")
    if given is not None:
        return (None if given == HIDDEN else ToolResult(content_of(given), span.failed)), None
    given = span.get("output.value")
    if given is None or given == HIDDEN:
        return None, None
    content = _content(given, span.get("output.mime_type"))
    if isinstance(content, dict) and "content" in content and "tool_call_id" in content:
        failed = span.failed or content.get("status") == "error"
        return ToolResult(content_of(content["content"]), failed), content["tool_call_id"]
    return ToolResult(content, span.failed), None


def _content(given: JsonValue, media: JsonValue) -> JsonValue:
    """Text that is said to be JSON is read as such, a bare `0` or `false` too."""
    if not isinstance(given, str) or media != "application/json":
        return content_of(given)
    try:
        return parse(given)
    except UnreadableError:
        return given

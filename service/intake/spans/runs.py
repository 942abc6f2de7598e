"""Read calls from tool spans, whichever instrumentation wrote them, and match them with the calls that messages made."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.members import JsonObject
from service.core.json.parsing import parse_or_none
from service.core.trace import ToolCall, ToolResult
from service.intake.spans.exports import Span, get_leaf
from service.intake.spans.messages import HIDDEN, drop_hidden, read_content
from service.intake.spans.selection import Enclosing, classify_span, is_copy, read_tool_name
from service.intake.texts import build_tool_call, read_literal

_ARGUMENTS = (
    *("gen_ai.tool.call.arguments", "tool_arguments", "ai.toolCall.args", "ai.toolCall.input"),
    *("mcp.tool.arguments", "mcp.request.argument"),
)
"""Attributes with the arguments as the model wrote them."""
_INPUTS = ("input.value", "traceloop.entity.input", "langfuse.observation.input", "gen_ai.prompt", "input")
"""Attributes with the arguments as the framework understood them. Text there that is not an object is the framework's
doing, not the model's.
"""
_OUTPUTS = (
    *("gen_ai.tool.call.result", "tool_response", "ai.toolCall.result", "ai.toolCall.output", "mcp.tool.result"),
    *("output.value", "traceloop.entity.output", "langfuse.observation.output", "output"),
)
PAYLOADS = frozenset({*_ARGUMENTS, *_INPUTS, *_OUTPUTS, "gen_ai.completion"})
"""Attributes of a tool span with its input and output: nothing in them is a call, whatever it looks like."""
_BOUND = frozenset({"args", "kwargs", "sanitize_inputs_outputs"})
"""Keys that smolagents, LlamaIndex and DSPy put around the arguments."""


class Run(NamedTuple):
    """A call as its tool's span records it. `output` is None if it was not captured."""

    span: Span
    call: ToolCall
    output: ToolResult | None

    def read_result(self, reported: ToolResult | None = None) -> ToolResult | None:
        """Return what the tool returned. `reported`: what a message says it returned."""
        if self.output is not None:
            return replace(self.output, is_error=self.output.is_error or (reported is not None and reported.is_error))
        if self.span.failed:
            raised = (one.attributes.get("exception.message") for one in self.span.events if one.name == "exception")
            return ToolResult(reported.content if reported else self.span.message or next(raised, None), True)
        return reported


def read_runs(spans: Sequence[Span]) -> list[Run]:
    """Return the calls that spans record, in order, each once, without those that an exporter made up."""
    runs = {span.order: _read_run(span) for span in spans if classify_span(span) == "tool" and not is_copy(span)}
    enclosing = Enclosing(spans, {run.span.id: order for order, run in runs.items() if run.span.id})
    outers: dict[int, int] = {}
    for order, run in runs.items():  # within a run of the same tool, unless their ids differ: both record one call
        outer = enclosing.find(run.span)
        if outer is not None and run.call.name == runs[outer].call.name:
            ids = {run.call.id, runs[outer].call.id} - {None, ""}
            outers |= {order: outer} if len(ids) < 2 else {}
    for inner in sorted(outers, reverse=True):
        way, outermost = list[int](), inner
        while outermost in outers:
            way.append(outermost)
            outermost = outers[outermost]
        outers.update(dict.fromkeys(way, outermost))
        runs[outermost] = _merge(runs[outermost], runs.pop(inner))
    return list(runs.values())


def _merge(outer: Run, inner: Run) -> Run:
    call = outer.call if outer.call.captured else inner.call
    call = replace(call, id=outer.call.id or inner.call.id)
    span = outer.span._replace(
        failed=outer.span.failed or inner.span.failed, message=outer.span.message or inner.span.message
    )
    output = outer.output or inner.output
    return Run(span, call, output and replace(output, is_error=output.is_error or inner.span.failed))


def _read_run(span: Span) -> Run:
    name = read_tool_name(span) or span.name
    output, call_id = _read_output(span)
    raw = span.get("gen_ai.tool.call.id") or span.get("tool.id") or span.get("tool_call.id")
    raw = raw or span.get("ai.toolCall.id") or call_id
    call, tool_id = _read_call(span, raw if isinstance(raw, str) else None, name), span.get("tool.id")
    return Run(span, call if tool_id is None else replace(call, tool_id=str(tool_id)), output)


def _read_call(span: Span, call_id: str | None, name: str) -> ToolCall:
    for key in _ARGUMENTS:
        raw = span.get(key)
        if raw is not None:
            call = drop_hidden(build_tool_call(call_id, name, raw))
            unwrapped = _unwrap_input(call.arguments)
            return call if unwrapped is call.arguments else replace(call, arguments=unwrapped)
    return next(_list_inputs(span, call_id, name), ToolCall(call_id, name, None, captured=False))


def _list_inputs(span: Span, call_id: str | None, name: str) -> Iterator[ToolCall]:
    """Iterate over the calls that the framework's record of its input gives; the first is used."""
    values = [get_leaf(span, key) for key in _INPUTS]
    values += [event.attributes.get("content") for event in span.events if event.name == "gen_ai.tool.message"]
    for raw in values:
        if raw is None or raw == HIDDEN:
            continue
        call = build_tool_call(call_id, name, raw)
        found = call.arguments
        if found is None and isinstance(raw, str):
            found = read_literal(raw)
        if isinstance(found, dict):
            yield replace(call, arguments=_unwrap_input(found), problem=None)
        elif not isinstance(raw, str) or raw.lstrip().startswith(("{", "[")):
            yield call


def _unwrap_input(raw: JsonObject | None) -> JsonObject | None:
    """Return the arguments inside a framework's wrapping.

    >>> _unwrap_input({"args": [], "kwargs": {"a": 1}}), _unwrap_input({"input_str": "{'a': 1}", "inputs": {"a": 1}})
    ({'a': 1}, {'a': 1})
    """
    if raw is None:
        return None
    inner, text = raw.get("kwargs"), raw.get("input_str")
    if isinstance(inner, dict) and raw.keys() <= _BOUND and not raw.get("args"):
        return inner
    if isinstance(text, str) and "inputs" in raw:
        inputs = raw["inputs"] if isinstance(raw["inputs"], dict) else read_literal(text) or raw
        return inputs if isinstance(inputs, dict) else raw
    return raw


def _read_output(span: Span) -> tuple[ToolResult | None, JsonValue]:
    """Return the tool's result, and the call id in it if it is a message with a tool's role."""
    values = [
        (get_leaf(span, key), span.get("output.mime_type") if key == "output.value" else None) for key in _OUTPUTS
    ]
    values += [(get_leaf(span, "gen_ai.completion"), "application/json")]
    values += [(event.attributes.get("message"), "blocks") for event in span.events if event.name == "gen_ai.choice"]
    for raw, media in values:
        if raw is None or raw == HIDDEN or (span.failed and raw in ("{}", "")):
            continue
        content, failed, call_id = _unwrap_output(_read_content(raw, media))
        text = raw if isinstance(raw, str) and content != raw else None
        return ToolResult(content, failed or span.failed, text=text), call_id
    return None, None


def _unwrap_output(content: JsonValue) -> tuple[JsonValue, bool, JsonValue]:
    """Return the result inside LangChain's or LlamaIndex's wrapping, whether it says it failed, and its call's id."""
    if not isinstance(content, dict):
        return content, False, None
    if content.keys() <= {"output", "kwargs"} and isinstance(content.get("output"), dict):
        return _unwrap_output(content["output"])
    inner = content.get("kwargs") if "lc" in content else content.get("data") if content.get("type") == "tool" else None
    if isinstance(inner, dict):
        return _unwrap_output(inner)
    if "content" in content and "tool_call_id" in content:
        return read_content(content["content"]), content.get("status") == "error", content["tool_call_id"]
    if "raw_output" in content and "tool_name" in content:
        return content["raw_output"], content.get("is_error") is True, None
    return content, False, None


def _read_content(raw: JsonValue, media: JsonValue) -> JsonValue:
    """Parse text declared as JSON, even a bare `0` or `false`; an event's text may spell blocks."""
    spelt = parse_or_none(raw) if isinstance(raw, str) and media in ("application/json", "blocks") else None
    if media == "application/json" and isinstance(raw, str):
        return raw if spelt is None and raw.strip() != "null" else spelt
    return read_content(spelt or raw)


_MAX_TRIES = 64
"""Calls of one key compared with a run. Only hostile exports have more that differ from it."""
_MATCH_RULES = (
    ("id name arguments", True),
    ("id name", True),
    ("name arguments", False),
    ("name arguments", True),
    ("name", False),
    ("name", True),
)
"""What identifies a run as a call, best first, and whether that applies to runs with an id or to those without."""


def match_runs(calls: Sequence[ToolCall], runs: Sequence[Run]) -> tuple[dict[int, Run], list[Run]]:
    """Match each call with its run; return runs by call index, and the runs that match no call.

    Calls with different ids, names or arguments are different calls; an id on one side only decides nothing. A tool
    may receive more arguments than the model wrote, and arguments of other types.
    """
    matches: dict[int, Run] = {}
    remaining = list(runs)
    # ADK gives a call without an id its name and a number, in messages alone.
    own = {at for at, call in enumerate(calls) if call.id and call.id.rstrip("0123456789") != f"{call.name}_"}
    for members, with_id in _MATCH_RULES:
        waiting: defaultdict[str, deque[int]] = defaultdict(deque)
        for index, call in enumerate(calls):
            if index not in matches and not (with_id and index in own and not members.startswith("id")):
                waiting[_build_key(call, members)].append(index)
        unclaimed: list[Run] = []
        for run in remaining:
            index = None
            if bool(run.call.id) == with_id and (run.call.arguments is not None or "arguments" not in members):
                index = _take(waiting[_build_key(run.call, members)], run.call, calls)
            if index is None:
                unclaimed.append(run)
            else:
                matches[index] = run
        remaining = unclaimed
    return matches, remaining


def _build_key(call: ToolCall, members: str) -> str:
    return json.dumps([getattr(call, name) for name in members.split()], sort_keys=True)


def _take(waiting: deque[int], run: ToolCall, calls: Sequence[ToolCall]) -> int | None:
    for offset, index in enumerate(islice(waiting, _MAX_TRIES)):
        if not _contradicts(calls[index], run):
            del waiting[offset]
            return index
    return None


def _contradicts(call: ToolCall, run: ToolCall) -> bool:
    """Whether call and run have different plain values for an argument.

    >>> made = ToolCall("1", "f", {"n": "5", "q": "a"})
    >>> [_contradicts(made, ToolCall("1", "f", raw)) for raw in ({"n": 5, "limit": 9}, {"n": 6}, None)]
    [False, True, False]
    """
    ours, theirs = call.arguments or {}, run.arguments or {}
    both = [(_spell(ours[name]), _spell(theirs[name])) for name in ours.keys() & theirs.keys()]
    return any(one != other for one, other in both if one is not None and other is not None)


def _spell(value: JsonValue) -> str | None:
    if isinstance(value, (dict, list)) or value is None:
        return None
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip().lower()

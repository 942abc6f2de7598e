"""Write traces in formats that callgrade also reads: our own, for people who want to see what was read, and ATIF."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from pydantic import JsonValue

from service.core.trace import Message, Step, ToolDef, Trace

Plain = dict[str, JsonValue]
ATIF_VERSION = "ATIF-v1.8"


def write_record(trace: Trace) -> Plain:
    """Build a record in the format `callgrade` that reads as the same messages, calls, results and tools.

    It cannot express that arguments were not captured (they are left out), what was unread, and the text of a span's result.
    """
    record: Plain = {"format": "callgrade"}
    if trace.id is not None:
        record["id"] = trace.id
    common = trace.catalogues.get(None) if trace.catalogues else trace.find_catalogue(None)
    if common is not None and common.tools is not None:
        record["tools"] = [_write_tool(tool) for tool in common.tools if tool.name not in common.offers]
    steps, offered = _group_steps(trace), _write_offers(trace)
    said = [
        one for index, message in enumerate(trace.messages) for one in _write_message(message, steps[index], offered)
    ]
    record["events"] = [*offered[-1], *said, *offered[len(trace.steps)]]
    if trace.state is not None:
        values: Plain = {"initial": trace.state.initial, "final": trace.state.final}
        record["state"] = {name: value for name, value in values.items() if name in trace.state.captured}
    if trace.output is not None:
        schema = trace.output.schema
        if trace.output.captured:
            record["output"] = trace.output.content
        if schema is not None:
            record["output_schema"] = schema if isinstance(schema, bool) else dict(schema)
    return record


def _write_tool(tool: ToolDef) -> Plain:
    written: Plain = {"name": tool.name}
    if tool.description:
        written["description"] = tool.description
    for name, value in (("parameters", tool.parameters), ("outputSchema", tool.output_schema)):
        if value is not None:
            written[name] = value if isinstance(value, bool) else dict(value)
    if tool.annotations:
        written["annotations"] = dict(tool.annotations)
    return written


def _write_offers(trace: Trace) -> defaultdict[int, list[Plain]]:
    """Write the tools that come during the run, by the step before which they come, and agents' own from the start at -1."""
    found: defaultdict[int, list[Plain]] = defaultdict(list)
    for agent, catalogue in (trace.catalogues or {None: trace.find_catalogue(None)}).items():
        by_step: defaultdict[int, list[JsonValue]] = defaultdict(list)
        for tool in catalogue.tools or ():
            came = catalogue.offers.get(tool.name)
            if came is not None or agent is not None:
                by_step[-1 if came is None else came.step].append(_write_tool(tool))
        for step, tools in by_step.items():
            event: Plain = {"tools": tools}
            found[step].append(event if agent is None else {**event, "agent": agent})
    return found


def _write_message(message: Message, steps: list[Step], offered: defaultdict[int, list[Plain]]) -> Iterator[Plain]:
    if message.text or not steps:
        said: Plain = (
            {"assistant": message.text, "to": message.to} if message.role == "agent" else {message.role: message.text}
        )
        yield said | ({} if message.agent is None else {"agent": message.agent})
    for place, step in enumerate(steps):
        yield from offered[step.index]
        yield _write_step(step, parallel=place > 0)


def _write_step(step: Step, *, parallel: bool) -> Plain:
    call = step.call
    made: Plain = {"name": call.name}
    if call.captured:
        made["arguments"] = call.raw if call.arguments is None else dict(call.arguments)
    if call.id is not None:
        made["id"] = call.id
    if call.tool_id is not None:
        made["tool_id"] = call.tool_id
    event: Plain = {"call": made}
    if parallel:
        event["parallel"] = True
    if step.result is not None:
        event["result"] = step.result.content
        if step.result.is_error:
            event["is_error"] = True
    if step.agent is not None:
        event["agent"] = step.agent
    return event


def write_atif(trace: Trace) -> Plain:
    """Build a trajectory of ATIF, Harbor's format, that reads as the same messages, calls, results and tools.

    It cannot express that a call failed, that arguments were not captured (they are empty), nor what was unread; agents of
    their own and tools that come later are not told apart.
    """
    agent: Plain = {"name": "agent", "version": "unknown"}
    if trace.tools is not None:
        kept = ("name", "description", "parameters")
        functions = [{name: one[name] for name in kept if name in one} for one in map(_write_tool, trace.tools)]
        agent["tool_definitions"] = [{"type": "function", "function": function} for function in functions]
    calls = _group_steps(trace)
    steps: list[JsonValue] = []
    for index, message in enumerate(trace.messages):
        source = message.role if message.role in ("user", "system") else "agent"
        written: Plain = {"step_id": len(steps) + 1, "source": source, "message": message.text}
        returned: list[JsonValue] = []
        made: list[JsonValue] = []
        for step in calls[index]:
            call, name = step.call, step.call.id or f"call_{step.index}"
            given = call.raw if call.arguments is None else dict(call.arguments)
            given = {} if given is None else given
            made.append({"tool_call_id": name, "function_name": call.name, "arguments": given})
            if step.result is not None:
                content = step.result.content
                text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
                returned.append({"source_call_id": name, "content": text})
        written |= {"tool_calls": made} if made else {}
        written |= {"observation": {"results": returned}} if returned else {}
        steps.append(written)
    return {"schema_version": ATIF_VERSION, "session_id": trace.id or "trace", "agent": agent, "steps": steps}


def _group_steps(trace: Trace) -> defaultdict[int, list[Step]]:
    steps: defaultdict[int, list[Step]] = defaultdict(list)
    for step in trace.steps:
        steps[step.message].append(step)
    return steps

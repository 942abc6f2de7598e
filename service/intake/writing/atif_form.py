"""Write traces as ATIF trajectories, for tools that read Harbor's format."""

from __future__ import annotations

import json
from collections import defaultdict

from pydantic import JsonValue

from service.core.trace import Step, ToolDef, Trace

Plain = dict[str, JsonValue]
VERSION = "ATIF-v1.8"


def write_atif(trace: Trace) -> Plain:
    """Build a trajectory that reads as the same messages, calls, results and tools.

    It cannot express that a call failed, that arguments were not captured (they are empty), nor what was unread; agents of
    their own and tools that come later are not told apart.
    """
    agent: Plain = {"name": "agent", "version": "unknown"}
    if trace.tools is not None:
        agent["tool_definitions"] = [_write_tool(tool) for tool in trace.tools]
    calls: defaultdict[int, list[Step]] = defaultdict(list)
    for step in trace.steps:
        calls[step.message].append(step)
    steps: list[JsonValue] = []
    for index, message in enumerate(trace.messages):
        source = message.role if message.role in ("user", "system") else "agent"
        written: Plain = {"step_id": len(steps) + 1, "source": source, "message": message.text}
        if calls[index]:
            written["tool_calls"] = [_write_call(step) for step in calls[index]]
            returned: list[JsonValue] = [_write_result(step) for step in calls[index] if step.result is not None]
            if returned:
                written["observation"] = {"results": returned}
        steps.append(written)
    return {"schema_version": VERSION, "session_id": trace.id or "trace", "agent": agent, "steps": steps}


def _write_tool(tool: ToolDef) -> Plain:
    function: Plain = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.parameters is not None:
        function["parameters"] = tool.parameters if isinstance(tool.parameters, bool) else dict(tool.parameters)
    return {"type": "function", "function": function}


def _name_call(step: Step) -> str:
    return step.call.id or f"call_{step.index}"


def _write_call(step: Step) -> Plain:
    call = step.call
    given = call.raw if call.arguments is None else dict(call.arguments)
    return {"tool_call_id": _name_call(step), "function_name": call.name, "arguments": {} if given is None else given}


def _write_result(step: Step) -> Plain:
    content = step.result.content if step.result is not None else None
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return {"source_call_id": _name_call(step), "content": text}

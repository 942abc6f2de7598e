"""ATIF, the Agent Trajectory Interchange Format of Harbor, versions 1.0 to 1.8.

A step of the agent holds its text, its calls and, in `observation`, what they returned. The format has no sign of a failed
call. A step copied from another trajectory is context; a trajectory that goes on in another file is not whole.
"""

from __future__ import annotations

from service.core.json.members import JsonObject, as_text, list_objects
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_input
from service.intake.parts import add_result, take_call
from service.intake.speech import Speech
from service.intake.tools import read_tools
from service.intake.unread_parts.endings import Ending


def _read(record: Cursor) -> Tools:
    record.out.id = record.text("trajectory_id") or record.text("session_id") or None
    for step in record.items("steps", of="a step"):
        source = step.text("source")
        step.take_all("step_id", "timestamp", "model_name")
        if source == "agent":
            _read_step(step)
        elif source in ("user", "system"):
            read_input(step, "user" if source == "user" else "system", "message")
        else:
            step.leave("a step of an unknown source", holds="text")
    if record.peek("continued_trajectory_ref"):
        record.out.end_with(Ending("unfinished", "/continued_trajectory_ref"))
    agent = record.child("agent")
    return read_tools(agent.take("tool_definitions"), path="/agent/tool_definitions")


def _read_step(step: Cursor) -> None:
    speech = Speech(step.out)
    for part in step.parts("message"):
        if isinstance(part.raw, str) or part.peek("type") in ("text", None):
            speech.add_text(part.raw if isinstance(part.raw, str) else part.text("text"))
        else:
            part.leave("a part", holds="text")
    for call in step.items("tool_calls", of="a call") if step.peek("tool_calls") else ():
        speech.call(take_call(call))
    speech.end()
    for result in step.child("observation").items("results", of="a result"):
        add_result(step.out, result)


def _recognise(record: JsonObject) -> bool:
    version = as_text(record.get("schema_version")) or ""
    return version.startswith("ATIF") or (
        "agent" in record and any("source" in step and "step_id" in step for step in list_objects(record.get("steps")))
    )


FORMATS = (
    Format(
        name="atif",
        read=_read,
        recognise=_recognise,
        score=92,
        summary="An ATIF trajectory, as Harbor writes it; `callgrade convert --to atif` writes one.",
        hint="a schema_version of ATIF, or steps with a source, and an agent",
    ),
)

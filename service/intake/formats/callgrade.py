"""Our own format, easy to write by hand: a list of events, each of which is something said or one call.

    {"format": "callgrade", "events": [{"user": "Rain?"}, {"call": {"name": "rain"}, "result": true}, {"assistant": "Yes."}]}

Results are taken as written; a string stays a string. A call without `result` is one whose result was not captured;
`null` is a result. `{"tools": [...]}` among the events adds tools that are on offer from there on. Calls follow one
another unless `parallel` says that the message of the previous call made this one too. If several agents act, `agent`
names the one that an event is of; what an assistant writes `to` another agent is not the user's word. A misspelt key in
an event is an error here; in the providers' formats unknown keys are the provider's and are kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NotRequired, cast

from pydantic import with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject
from service.core.trace import AgentOutput, Role, ToolResult, Trace
from service.errors import InputError
from service.intake.build import Record, Transcript
from service.intake.cursor import Cursor
from service.intake.format import CLOSED, Format, Loose, ToolsShape
from service.intake.texts import build_tool_call
from service.intake.tools import read_tools


@with_config(CLOSED)
class NamedCall(TypedDict):
    """A call. `arguments` is an object, or a string as the model wrote it; absent means none.

    `tool_id`: an id of the tool.
    """

    name: str
    arguments: NotRequired[Loose]
    id: NotRequired[str | None]
    tool_id: NotRequired[str | None]


@with_config(CLOSED)
class Event(TypedDict, total=False):
    """One of `user`, `assistant` and `system` (a text), `call` with its `result`, or `tools` that are on offer from here on.

    `agent`: who writes or calls, who is addressed, or whose the tools are. `to`: another agent that an assistant's text is for.
    """

    user: str
    assistant: str
    system: str
    call: NamedCall
    result: Loose
    is_error: bool
    parallel: bool
    tools: ToolsShape
    agent: str
    to: str


_ROLES: tuple[Literal["user"], Literal["assistant"], Literal["system"]] = ("user", "assistant", "system")


@Format(
    score=90,
    signs=("events[]",),
    members={
        "events": list[Event],
        "tools": NotRequired[ToolsShape],
        "output": NotRequired[Loose],
        "output_schema": NotRequired[dict[str, Loose] | bool | None],
    },
    closed=True,
)
def callgrade(record: Cursor) -> Trace:
    """Our own format, for writing by hand: `events`; `output` is what the run returned, `output_schema` its schema."""
    raw = record.members
    record.drop()
    record.out.close()  # our own form lists all that happened
    events = cast("list[Event]", raw.get("events"))
    called = False
    for index, event in enumerate(events):
        path = f"/events/{index}"
        if event.get("parallel") and not called:
            raise InputError.at(f"{path}/parallel", "there is no call right before this one")
        called = "call" in event or (called and "tools" in event)
        record.out.agent = event.get("agent")
        _read_event(record.out, event, path)
    added = any("tools" in event and "agent" not in event for event in events)
    tools = read_tools(raw.get("tools", [] if added else None))
    schema, captured = cast("JsonObject | bool | None", raw.get("output_schema")), "output" in raw
    output = AgentOutput(raw.get("output"), schema, captured) if captured or schema is not None else None
    return record.out.build_trace(cast("Record", raw), tools=tools, output=output)


def _read_event(transcript: Transcript, event: Event, path: str) -> None:
    call, more = event.get("call"), read_tools(event.get("tools"), path=f"{path}/tools")
    texts: list[tuple[Role, str]] = [(role, text) for role in _ROLES if (text := event.get(role)) is not None]
    if len(texts) + (call is not None) + (more is not None) != 1:
        raise InputError.at(path, "an event has exactly one of user, assistant, system, call and tools")
    if call is not None:
        parsed = build_tool_call(call.get("id"), call["name"], call.get("arguments"))
        tool_id = call.get("tool_id")
        parsed = parsed if tool_id is None else replace(parsed, tool_id=tool_id)
        transcript.call(parsed, parallel=event.get("parallel", False))
        failed = event.get("is_error", False)  # of an error without a result what it said is unknown
        transcript.answer(ToolResult(event.get("result"), failed) if "result" in event or failed else None)
    elif event.keys() & {"result", "is_error", "parallel"}:
        raise InputError.at(path, "result, is_error and parallel belong to a call")
    elif more is None:
        role, text = texts[0]
        transcript.say("agent" if "to" in event else role, text, to=event.get("to"))
    if "to" in event and "assistant" not in event:
        raise InputError.at(f"{path}/to", "only an assistant writes to another agent")
    for tool in more or ():
        transcript.offer(tool, late=True)

"""A simulation of tau2-bench; a file of results is a trace for each, with the actions of its task as gold.

Calls that the simulated user made are not the agent's, and neither are their results. A tool's message names its call in
`id` and says in `error` whether it failed. Conversations end with the user.
"""

from __future__ import annotations

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, list_items, list_objects
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import find_speaker, read_message
from service.intake.tools import read_tools
from service.intake.unread_parts.endings import Ending

_ENDED = frozenset({"user_stop", "agent_stop"})


def _read(record: Cursor) -> Tools:
    record.out.id = f"task-{record.take('task_id')}-trial-{record.take('trial') or 0}"
    record.take_all("task", "reward_info", "info", "timestamp", "start_time", "end_time")
    for message in record.items("messages", of="a message"):
        if message.peek("role") == "tool" and "tool_messages" in message:
            message.take("role")
            for inner in message.items("tool_messages", of="a message"):
                _read_message(inner)
        else:
            _read_message(message)
    reason = record.text("termination_reason")
    if reason in _ENDED:
        record.out.close()
    elif reason:
        record.out.end_with(Ending(f"incomplete: {reason}", "/termination_reason"))
    return read_tools(record.take("tools"))


def _read_message(message: Cursor) -> None:
    speaker = find_speaker(message)
    if message.peek("requestor") == "user" and speaker == "tool":
        message.take_all("id", "content", "requestor", "error")
    else:
        message.take_all("turn_idx", "requestor", "timestamp", "raw_data")
        for call in message.items("tool_calls", of="a call") if speaker == "user" else ():
            if call.peek("requestor") == "user":
                call.drop()
            else:
                call.leave(holds="call")
        read_message(message, speaker)


def _read_gold(record: JsonObject) -> dict[str, JsonValue] | None:
    criteria = find_object(find_object(record, "task"), "evaluation_criteria")
    actions = criteria.get("actions")
    if not isinstance(actions, list):
        return None
    own: list[JsonValue] = [
        {name: action[name] for name in ("name", "arguments", "compare_args", "action_id") if name in action}
        for action in list_objects(actions)
        if action.get("requestor", "assistant") == "assistant"
    ]
    return {"format": "tau", "actions": own, "outputs": list_items(criteria.get("communicate_info"))}


def _split(record: JsonObject) -> list[tuple[str, JsonObject]] | None:
    """Return the simulations of a file of results, each with its task; None if the record is none."""
    if not isinstance(record.get("simulations"), list):
        return None
    tasks = {str(task.get("id")): dict(task) for task in list_objects(record.get("tasks"))}
    return [
        (f"/simulations/{index}", {**one, "task": tasks.get(str(one.get("task_id")))})
        for index, one in enumerate(list_objects(record["simulations"]))
    ]


FORMATS = (
    Format(
        name="tau2",
        read=_read,
        recognise=lambda record: (
            "termination_reason" in record and "task_id" in record and isinstance(record.get("messages"), list)
        ),
        score=71,
        summary="A simulation of tau2-bench; a file of results is a trace for each.",
        hint="messages with a task_id and a termination_reason",
        gold=_read_gold,
        split=_split,
    ),
)

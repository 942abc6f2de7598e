"""Runs of tau-bench (sierra-research/tau-bench), as its result files give them or with everything inline.

The first form is `{task_id, trial, reward, info: {task: {actions, outputs}}, traj}`, the second, with messages, gold
and states inline, `{task_id, trial, messages, gold_actions, outputs, initial, gold, final}`. Messages are those of
Chat Completions. tau-bench signals a failed call by a text that starts with "Error", and this format follows it.
`tools` may stand in the record; otherwise the tools on offer are unknown.
"""

from __future__ import annotations

from typing import cast

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, list_objects
from service.errors import InputError
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_messages
from service.intake.tools import read_tools

_GOLD = ("gold_actions", "outputs", "gold", "info", "initial", "final")


def _read(record: Cursor) -> Tools:
    chosen = next((name for name in ("messages", "traj") if name in record), None)
    task = record.take("task_id")
    if chosen is None or not isinstance(task, (int, str)):
        what = "the conversation in messages or traj" if chosen is None else "a task_id"
        raise InputError.at("" if chosen is None else "/task_id", f"expected {what}")
    read_messages(record.out, record.items(chosen, of="a message"), error_prefix="Error", strict=True)
    trial = record.take("trial")
    record.out.id = f"task-{task}" + ("" if trial is None else f"-trial-{trial}")
    record.out.state = cast("JsonObject", record.raw)
    for name in _GOLD:
        record.take(name)
    record.out.close()  # the simulated user has the last word
    return read_tools(record.take("tools"))


def _read_gold(record: JsonObject) -> dict[str, JsonValue] | None:
    task = find_object(find_object(record, "info"), "task")
    actions = record.get("gold_actions", task.get("actions"))
    outputs = record.get("outputs", task.get("outputs"))
    state = record.get("gold")
    if actions is None and outputs is None and state is None:
        return None
    plain: list[JsonValue] = [{name: one.get(name) for name in ("name", "kwargs")} for one in list_objects(actions)]
    listed = plain if isinstance(actions, list) else actions
    return {"format": "tau", "actions": listed, "outputs": outputs or [], "state": state}


FORMATS = (
    Format(
        name="tau",
        read=_read,
        recognise=lambda record: "traj" in record or ("task_id" in record and "messages" in record),
        score=70,
        summary="A tau-bench run: either `messages` or `traj`.",
        hint="traj, or messages with a task_id",
        gold=_read_gold,
    ),
)

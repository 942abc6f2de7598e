"""Runs of tau-bench (sierra-research/tau-bench), as its result files give them or with everything inline.

The first form is `{task_id, trial, reward, info: {task: {actions, outputs}}, traj}`, the second, with messages, gold
and states inline, `{task_id, trial, messages, gold_actions, outputs, initial, gold, final}`. Messages are those of
Chat Completions. tau-bench signals a failed call by a text that starts with "Error", and this format follows it.
`tools` may stand in the record; otherwise the tools on offer are unknown.
"""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject
from service.core.trace import Trace
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.chat import ChatMessage, read_messages
from service.intake.format import Format
from service.intake.shapes import OPEN, Loose, Tools
from service.intake.tools import read_tools
from service.intake.unread_parts.members import define_members, note_unread_alternatives, note_unread_members


@with_config(OPEN)
class TauAction(TypedDict):
    """A gold action."""

    name: str
    kwargs: dict[str, Loose]


@with_config(OPEN)
class TauTask(TypedDict, total=False):
    """The task of a run."""

    actions: list[TauAction] | None
    outputs: list[str] | None


@with_config(OPEN)
class TauInfo(TypedDict, total=False):
    """tau-bench's notes on a run. A run that crashed has an error here and no task."""

    task: TauTask | None


@with_config(OPEN)
class TauTrace(TypedDict):
    """A tau-bench run: either `messages` or `traj`."""

    format: Literal["tau"]
    task_id: int | str
    trial: NotRequired[int | str | None]
    messages: NotRequired[list[ChatMessage]]
    traj: NotRequired[list[ChatMessage]]
    tools: NotRequired[Tools]
    initial: NotRequired[Loose]
    final: NotRequired[Loose]
    gold: NotRequired[Loose]
    gold_actions: NotRequired[list[TauAction] | None]
    outputs: NotRequired[list[str] | None]
    info: NotRequired[TauInfo | None]


RECORD = define_members(
    "the run",
    "format task_id trial messages traj tools initial final gold gold_actions outputs info",
)


def read(record: TauTrace) -> Trace:
    """Read a validated record. Raises InputError: no messages, an unusable call or tools."""
    messages = record.get("messages", record.get("traj"))
    if messages is None:
        raise InputError.at("", "expected the conversation in messages or traj")
    transcript = Transcript()
    chosen = "messages" if "messages" in record else "traj"
    read_messages(transcript, messages, path=f"/{chosen}", error_prefix="Error")
    note_unread_alternatives(transcript, record, ("messages", "traj"), chosen, "the run")
    note_unread_members(transcript, record, RECORD, "")
    transcript.close()  # the simulated user has the last word
    tools = read_tools(record.get("tools"))
    return transcript.build_trace(record, trace_id=_read_id(record), tools=tools, state=record)


def read_gold(record: TauTrace) -> dict[str, JsonValue] | None:
    """Return the gold: `{format, actions: [{name, kwargs}] | None, outputs: [text], state: gold state | None}`.

    None if the record names no gold.
    """
    info = record.get("info") or {}
    task = info.get("task") or {}
    actions = record.get("gold_actions", task.get("actions"))
    outputs = record.get("outputs", task.get("outputs"))
    state = record.get("gold")
    if actions is None and outputs is None and state is None:
        return None
    plain: list[JsonValue] | None = None
    if actions is not None:
        plain = [{"name": action["name"], "kwargs": action["kwargs"]} for action in actions]
    return {"format": "tau", "actions": plain, "outputs": [*(outputs or ())], "state": state}


def _read_id(record: TauTrace) -> str:
    trial = record.get("trial")
    return f"task-{record['task_id']}" + ("" if trial is None else f"-trial-{trial}")


def _recognise(record: JsonObject) -> bool:
    return "traj" in record or ("task_id" in record and "messages" in record)


FORMAT = Format(TauTrace, read, _recognise, rank=30, hint="traj, or messages beside a task_id", gold=read_gold, place=6)

"""Runs and test cases of benchmarks and evaluation libraries, some with gold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, cast

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, find_text, list_items, list_objects
from service.core.trace import ToolResult
from service.errors import InputError
from service.intake.calls import read_result_content
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools, take_tools
from service.intake.messages import find_speaker, read_message, read_messages
from service.intake.parts import take_call
from service.intake.speech import Speech
from service.intake.unread_parts.endings import Ending

# Runs of tau-bench (sierra-research/tau-bench), as its result files give them or with everything inline.
#
# The first form is `{task_id, trial, reward, info: {task: {actions, outputs}}, traj}`, the second, with messages, gold
# and states inline, `{task_id, trial, messages, gold_actions, outputs, initial, gold, final}`. Messages are those of
# Chat Completions. tau-bench signals a failed call by a text that starts with "Error", and this format follows it.
# `tools` may stand in the record; otherwise the tools on offer are unknown.

_GOLD = ("gold_actions", "outputs", "gold", "info", "initial", "final")


def _read_tau(record: Cursor) -> Tools:
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
    return take_tools(record, "tools")


def _read_tau_gold(record: JsonObject) -> dict[str, JsonValue] | None:
    task = find_object(find_object(record, "info"), "task")
    actions = record.get("gold_actions", task.get("actions"))
    outputs = record.get("outputs", task.get("outputs"))
    state = record.get("gold")
    if actions is None and outputs is None and state is None:
        return None
    plain: list[JsonValue] = [{name: one.get(name) for name in ("name", "kwargs")} for one in list_objects(actions)]
    listed = plain if isinstance(actions, list) else actions
    return {"format": "tau", "actions": listed, "outputs": outputs or [], "state": state}


# A simulation of tau2-bench; a file of results is a trace for each, with the actions of its task as gold.
#
# Calls that the simulated user made are not the agent's, and neither are their results. A tool's message names its call in
# `id` and says in `error` whether it failed. Conversations end with the user.

_ENDED = frozenset({"user_stop", "agent_stop"})


def _read_tau2(record: Cursor) -> Tools:
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
    return take_tools(record, "tools")


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


def _read_tau2_gold(record: JsonObject) -> dict[str, JsonValue] | None:
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


def _split_tau2(record: JsonObject) -> list[tuple[str, JsonObject]] | None:
    """Return the simulations of a file of results, each with its task; None if the record is none."""
    if not isinstance(record.get("simulations"), list):
        return None
    tasks = {str(task.get("id")): dict(task) for task in list_objects(record.get("tasks"))}
    return [
        (f"/simulations/{index}", {**one, "task": tasks.get(str(one.get("task_id")))})
        for index, one in enumerate(list_objects(record["simulations"]))
    ]


# A sample of an Inspect log (`.json`, or an entry of an `.eval` archive), with its `target` as reference.
#
# A tool failed if its message has an `error`. Long texts may stand in `attachments`. The `output` repeats the last message and
# says how it ended; a `limit` or an `error` says that the sample was stopped. The `events` say again what the messages do, and
# what other agents did.

_ATTACHED = "attachment://"


def _read_inspect_ai(record: Cursor) -> Tools:
    record.out.id = f"{record.take('id')}-epoch-{record.take('epoch')}"
    record.take_all("target", "input")
    attached = find_object(record.members, "attachments")
    messages = record.take("messages")
    inner = Cursor({"messages": _attach(messages, attached) if attached else messages}, record.out)
    read_messages(record.out, inner.items("messages", of="a message"))
    for event in record.items("events", of="an event"):
        event.take("call")  # with the provider, whose answer is the event's output
        for choice in event.child("output").items("choices"):
            choice.child("message").take("content")
        if event.peek("event") in ("state", "store"):
            event.drop()
    record.take("events_data")
    output = record.child("output")
    choice = next(list_objects(output.take("choices")), None)
    if choice is not None and isinstance(reason := choice.get("stop_reason"), str):
        record.out.end_with(Ending(reason, "/output/choices/0/stop_reason"))
    output.drop()
    limit = record.child("limit")
    if limit:
        record.out.end_with(Ending(f"incomplete: the limit of {limit.text('type') or 'the sample'}", "/limit"))
    elif record.peek("error") and not record.out.has_replied():
        record.out.end_reply({"error": record.peek("error")}, "")
    return None


def _attach(value: JsonValue, attached: Mapping[str, JsonValue]) -> JsonValue:
    """Return a value with the texts that stand in the sample's attachments."""
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return attached.get(value.removeprefix(_ATTACHED), value)
    if isinstance(value, list):
        return [_attach(item, attached) for item in value]
    return {name: _attach(item, attached) for name, item in value.items()} if isinstance(value, dict) else value


def _is_inspect_ai(record: JsonObject) -> bool:
    return "epoch" in record and isinstance(record.get("messages"), list)


def _split_inspect_ai(record: JsonObject) -> list[tuple[str, JsonObject]] | None:
    """Return the samples of a log, with their pointers; None if it is none."""
    samples = list(list_objects(record.get("samples")))
    if "eval" not in record or not any(map(_is_inspect_ai, samples)):
        return None
    return [(f"/samples/{index}", sample) for index, sample in enumerate(samples)]


# DeepEval test cases, with members in camel or in snake case: one question and answer, or the `turns` of a conversation.
#
# The tools that were called stand apart from the texts, with neither ids nor an order between them: they are read as calls
# of the reply, before its text. `expected_tools` are the gold.

_CALLED = ("toolsCalled", "tools_called", "mcpToolsCalled", "mcp_tools_called")
_EXPECTED = ("expectedTools", "expected_tools")
_ANSWER = ("actualOutput", "actual_output")


def _read_deepeval(record: Cursor) -> Tools:
    for name in _EXPECTED:
        record.take(name)
    if "turns" in record:
        for turn in record.items("turns", of="a turn"):
            if turn.text("role") == "assistant":
                _read_reply(turn, turn.text("content"))
            else:
                record.out.say("user", turn.text("content"))
        return None
    record.out.say("user", record.text("input"))
    _read_reply(record, record.text(*_ANSWER))
    return None


def _read_reply(holder: Cursor, text: str) -> None:
    speech = Speech(holder.out)
    for name in _CALLED:
        for raw in holder.items(name, of="a call") if holder.peek(name) else ():
            call, returned = (
                take_call(raw),
                next((key for key in ("output", "result") if raw.peek(key) is not None), ""),
            )
            speech.call(call, ToolResult(read_result_content(raw.take(returned))) if returned else None)
    speech.add_text(text)
    speech.end()


def _read_deepeval_gold(record: JsonObject) -> dict[str, JsonValue] | None:
    raw = next((record[name] for name in _EXPECTED if record.get(name) is not None), None)
    if raw is None:
        return None
    calls: list[JsonValue] = [
        {
            "name": find_text(call, "name") or "",
            "arguments": call.get("inputParameters", call.get("input_parameters")),
        }
        for call in list_objects(raw)
    ]
    return {"format": "calls", "calls": calls}


def _is_deepeval(record: JsonObject) -> bool:
    turns = [turn for turn in list_objects(record.get("turns")) if "role" in turn and "content" in turn]
    asked = isinstance(record.get("input"), str) and any(name in record for name in _ANSWER)
    return asked or bool(turns) or (isinstance(record.get("input"), str) and any(name in record for name in _CALLED))


# ragas samples: `user_input` is a conversation, or a question that `response` answers; `reference_tool_calls` is the gold.
#
# Messages are LangChain's without ids: a result belongs to the call before it, in order.


def _read_ragas(record: Cursor) -> Tools:
    record.take("reference_tool_calls")
    question = record.text("user_input")
    if question:
        record.out.say("user", question)
    for message in record.items("user_input", of="a message") if not question else ():
        content = find_object(message.members, "content")
        speaker = find_speaker(message, "type", "role")
        if speaker is not None and "text" in content:  # `to_dict` puts text and calls into the content
            inner, speech = message.child("content"), Speech(record.out)
            speech.add_text(inner.text("text"))
            for call in inner.items("tool_calls", of="a call"):
                speech.call(take_call(call))
            speech.end()
        else:
            read_message(message, speaker)
    answer = record.text("response")
    if answer:
        record.out.say("assistant", answer)
    return None


def _read_ragas_gold(record: JsonObject) -> dict[str, JsonValue] | None:
    raw = record.get("reference_tool_calls")
    if not isinstance(raw, list):
        return None
    calls: list[JsonValue] = [
        {"name": find_text(call, "name") or "", "arguments": call.get("args")} for call in list_objects(raw)
    ]
    return {"format": "calls", "calls": calls, "ordered": True}


FORMATS = (
    Format(
        name="tau",
        read=_read_tau,
        recognise=lambda record: "traj" in record or ("task_id" in record and "messages" in record),
        score=70,
        summary="A tau-bench run: either `messages` or `traj`.",
        hint="traj, or messages with a task_id",
        gold=_read_tau_gold,
    ),
    Format(
        name="tau2",
        read=_read_tau2,
        recognise=lambda record: (
            "termination_reason" in record and "task_id" in record and isinstance(record.get("messages"), list)
        ),
        score=71,
        summary="A simulation of tau2-bench; a file of results is a trace for each.",
        hint="messages with a task_id and a termination_reason",
        gold=_read_tau2_gold,
        split=_split_tau2,
    ),
    Format(
        name="inspect_ai",
        read=_read_inspect_ai,
        recognise=_is_inspect_ai,
        score=89,
        summary="A sample of an Inspect log; a file with a whole log is a trace for each.",
        hint="messages with an epoch",
        members={"id": NotRequired[int | str | None]},
        split=_split_inspect_ai,
    ),
    Format(
        name="deepeval",
        read=_read_deepeval,
        recognise=_is_deepeval,
        score=72,
        summary="A DeepEval test case: a question with its answer, or turns, with the tools called.",
        hint="input with actualOutput or toolsCalled, or turns",
        gold=_read_deepeval_gold,
    ),
    Format(
        name="ragas",
        read=_read_ragas,
        recognise=lambda record: isinstance(record.get("user_input"), (str, list)),
        score=73,
        summary="A ragas sample: a conversation in `user_input`, or a question with its `response`.",
        hint="user_input",
        gold=_read_ragas_gold,
    ),
)

"""Cases of benchmarks and evaluation libraries, some with gold: tau-bench, tau2-bench, BFCL, Inspect, DeepEval, ragas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NotRequired, cast

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_object, find_text, list_elements, list_objects
from service.core.trace import ToolCall, ToolResult
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools, holds, split_list, take_tools
from service.intake.messages import find_speaker, read_message, read_messages, read_reply_message
from service.intake.parts import take_call
from service.intake.texts import (
    THOUGHT,
    build_tool_call,
    drop_thoughts,
    holds_calls,
    looks_like_calls,
    parse_calls,
    parse_text,
    read_result_content,
)
from service.intake.tools import read_tools
from service.intake.unread_parts.leftovers import Rest
from service.intake.unread_parts.suspects import list_possible_calls


def _find_tau_gold(record: JsonObject) -> dict[str, JsonValue] | None:
    task = find_object(find_object(record, "info"), "task")
    actions = record.get("gold_actions", task.get("actions"))
    outputs = record.get("outputs", task.get("outputs"))
    state = record.get("gold")
    if actions is None and outputs is None and state is None:
        return None
    listed = _pick(list_objects(actions), "name", "kwargs") if isinstance(actions, list) else actions
    return {"format": "tau", "actions": listed, "outputs": outputs or [], "state": state}


@Format(score=70, signs=("traj", "task_id messages"), gold=_find_tau_gold)
def tau(record: Cursor) -> Tools:
    """A tau-bench run: either `messages` or `traj`.

    It is as result files give it, `{task_id, trial, reward, info: {task: {actions, outputs}}, traj}`, or with everything inline:
    `{task_id, trial, messages, gold_actions, outputs, initial, gold, final}`. It signals a failed call by a text that starts with
    "Error". The simulated user has the last word.
    """
    chosen = next((name for name in ("messages", "traj") if name in record), None)
    task, trial = record.take("task_id"), record.take("trial")
    if chosen is None:
        raise InputError.at("", "expected the conversation in messages or traj")
    if not isinstance(task, (int, str)):
        raise InputError.at("/task_id", "expected a task_id")
    read_messages(record.items(chosen, of="a message"), error_prefix="Error", strict=True)
    record.out.id = f"task-{task}" + ("" if trial is None else f"-trial-{trial}")
    record.out.state = cast("JsonObject", record.raw)
    record.take_all("gold_actions", "outputs", "gold", "info", "initial", "final")
    record.out.close()
    return take_tools(record, "tools")


def _pick(actions: Iterable[JsonObject], *names: str) -> JsonValue:
    return [{name: action[name] for name in names if name in action} for action in actions]


def _find_tau2_gold(record: JsonObject) -> dict[str, JsonValue] | None:
    criteria = find_object(find_object(record, "task"), "evaluation_criteria")
    actions = criteria.get("actions")
    if not isinstance(actions, list):
        return None
    own = [one for one in list_objects(actions) if one.get("requestor", "assistant") == "assistant"]
    plain = _pick(own, "name", "arguments", "compare_args", "action_id")
    return {"format": "tau", "actions": plain, "outputs": list_elements(criteria.get("communicate_info"))}


def _split_tau2(record: JsonObject) -> list[tuple[str, JsonObject]] | None:
    """Return the simulations of a file of results, each with its task; None if the record is none."""
    if not isinstance(record.get("simulations"), list):
        return None
    tasks = {str(task.get("id")): dict(task) for task in list_objects(record.get("tasks"))}
    return [
        (f"/simulations/{index}", {**one, "task": tasks.get(str(one.get("task_id")))})
        for index, one in enumerate(list_objects(record["simulations"]))
    ]


@Format(score=71, signs=("termination_reason task_id messages[]",), gold=_find_tau2_gold, split=_split_tau2)
def tau2(record: Cursor) -> Tools:
    """A simulation of tau2-bench; a file of results is a trace for each.

    The actions of its task are the gold. Calls that the simulated user made are not the agent's, and neither are their results.
    A tool's message names its call in `id` and says in `error` whether it failed.
    """
    record.out.id = f"task-{record.take('task_id')}-trial-{record.take('trial') or 0}"
    record.take_all("task", "reward_info", "info", "timestamp", "start_time", "end_time")
    for message in record.items("messages", of="a message"):
        if message.peek("role") == "tool" and "tool_messages" in message:
            message.take("role")
            for inner in message.items("tool_messages", of="a message"):
                _read_tau2_message(inner)
        else:
            _read_tau2_message(message)
    reason = record.text("termination_reason")
    if reason in ("user_stop", "agent_stop"):
        record.out.close()
    elif reason:
        record.out.end_with(f"incomplete: {reason}", "/termination_reason")
    return take_tools(record, "tools")


def _read_tau2_message(message: Cursor) -> None:
    speaker = find_speaker(message)
    message.take_all("turn_idx", "requestor", "timestamp", "raw_data")
    if message.peek("requestor") == "user" and speaker == "tool":
        message.take_all("id", "content", "error")
        return
    for call in message.items("tool_calls", of="a call") if speaker == "user" else ():
        if call.peek("requestor") == "user":
            call.drop()
        else:
            call.leave(holds="call")
    read_message(message, speaker)


_KEY = ("possible_answer", "ground_truth")


def _find_bfcl_gold(record: JsonObject) -> dict[str, JsonValue] | None:
    category = find_text(record, "category")  # in the "relevance" categories no key means that no function fits
    if not record.keys() & set(_KEY) and "relevance" not in (category or ""):
        return None
    answer = record.get("possible_answer", record.get("ground_truth"))
    dotted = record.get("underscore_to_dot") is True
    answers: list[JsonValue] = [
        {_show_name(name, dotted=dotted): one for name, one in call.items()} if isinstance(call, dict) else call
        for call in list_elements(answer)
    ]
    return {"format": "bfcl", "category": category, "possible_answer": None if answer is None else answers}


@Format(score=60, signs=("question calls", "question result"), gold=_find_bfcl_gold)
def bfcl(record: Cursor) -> Tools:
    """A question of the Berkeley leaderboard with `functions`, an output and perhaps `possible_answer` (`ground_truth`).

    `calls` is the decoded output, `[{name: {param: value}}]`. It is null if decoding failed; `result` is then the raw output: a
    text is the answer, a list `[{name: "<JSON string>"}]` holds calls, some of which may not parse. Without `calls`, a text that
    consists of calls in Python is read as calls. All calls are made by one message. `underscore_to_dot` says that the model could
    not write "." in a name and was shown "_" instead: tools and gold are renamed to match. The leaderboard's own type names
    ("dict", "float", "tuple") stay in the parameters.
    """
    if "calls" not in record and "result" not in record:
        raise InputError.at("", "expected a BFCL output in calls or result")
    if question := record.text("question"):
        record.out.say("user", question)
    asked = record.items("question", of="a message") if isinstance(record.peek("question"), list) else ()
    grouped = (one.items(of="a message") if isinstance(one.raw, list) else (one,) for one in asked)  # by turn
    read_messages(chain.from_iterable(grouped), strict=True)
    decoded, calls, result = "calls" in record, record.take("calls"), record.take("result")
    for value, path in ((calls, "/calls"), (None if isinstance(result, str) else result, "/result")):
        if not isinstance(value, list) and value is not None:
            raise InputError.at(path, "expected an array")
        wrong = next((index for index, call in enumerate(value or ()) if not isinstance(call, dict)), None)
        if wrong is not None:
            raise InputError.at(f"{path}/{wrong}", "expected an object")
    if isinstance(result, str) and not decoded:
        _read_written(record.out, result)
    else:
        _read_decoded(record.out, calls, result)
    record.take_all("category", *_KEY)
    record.out.state = {}
    name = "functions" if "functions" in record else "function"
    listed = record.take(name)
    listed = [listed] if isinstance(listed, dict) and "name" in listed else listed  # early files store a lone one bare
    tools, dotted = read_tools(listed, path=f"/{name}"), record.flag("underscore_to_dot")
    return tools and tuple([replace(tool, name=_show_name(tool.name, dotted=dotted)) for tool in tools])


def _read_written(out: Transcript, result: str) -> None:
    """Add what a model wrote: as calls if it consists of them, otherwise as text."""
    text = drop_thoughts(result)
    calls = parse_calls(text)
    out.say("assistant", text if calls is None else "")
    unended = "".join([thought[1] for thought in THOUGHT.finditer(result) if not thought[2]])
    if unended:
        out.note_unread("text", "/result", "what follows a thought that does not end")
    if (calls is None and holds_calls(text)) or holds_calls(unended):
        out.note_unread("call", "/result", "a text that holds what looks like a call in Python")
    for call in calls or ():
        if call.arguments is None:
            out.note_unread(
                "call", "/result", f"a call of {call.name[:60]!r} whose arguments are not all named literals"
            )
        else:
            out.call(build_tool_call(None, call.name, call.arguments), parallel=True)


def _read_decoded(out: Transcript, calls: JsonValue, result: JsonValue) -> None:
    if isinstance(result, str) and not calls:
        out.say("assistant", result)
        out.decoded = calls is None
        if calls is not None and (looks_like_calls(result) or any(list_possible_calls(parse_text(result), ""))):
            out.note_unread("call", "/result", "a call in the output, which was decoded to none,")
    elif calls is not None:
        raw: list[JsonValue] = [{"name": call.name, "arguments": call.raw} for call in _list_decoded(result)]
        out.leave(Rest(raw, "/result", "the output, beside what was decoded of it,", by_id=False))
    for call in _list_decoded(result if calls is None else calls):
        out.call(call)
    if not (calls is None and result is None):
        out.close()  # the output is there, and may be empty


def _list_decoded(output: JsonValue) -> list[ToolCall]:
    return [build_tool_call(None, name, given) for call in list_objects(output) for name, given in call.items()]


def _show_name(name: str, *, dotted: bool) -> str:
    """Return a function's name as the model saw it."""
    return name.replace(".", "_") if dotted else name


@Format(
    score=89,
    signs=("epoch messages[]",),
    members={"id": NotRequired[int | str | None]},
    split=lambda record: split_list(record, ("samples",)) if holds(record, "samples", "epoch", "messages") else None,
)
def inspect_ai(record: Cursor) -> Tools:
    """A sample of an Inspect log; a file with a whole log is a trace for each.

    A tool failed if its message has an `error`. Long texts may stand in `attachments`. The `output` repeats the last message and
    says how it ended; a `limit` or an `error` says that the sample was stopped. The `events` say again what the messages do, and
    what other agents did.
    """
    record.out.id = f"{record.take('id')}-epoch-{record.take('epoch')}"
    record.take_all("target", "input", "events_data")
    attached = find_object(record.members, "attachments")
    messages = record.take("messages")
    inner = Cursor({"messages": _attach(messages, attached) if attached else messages}, record.out)
    read_messages(inner.items("messages", of="a message"))
    for event in record.items("events", of="an event"):
        event.take("call")  # with the provider, whose answer is the event's output
        for choice in event.child("output").items("choices"):
            choice.child("message").take("content")
        if event.peek("event") in ("state", "store"):
            event.drop()
    output = record.child("output")
    choice = next(list_objects(output.take("choices")), None)
    if choice is not None and (reason := find_text(choice, "stop_reason")):
        record.out.end_with(reason, "/output/choices/0/stop_reason")
    output.drop()
    limit = record.child("limit")
    if limit:
        record.out.end_with(f"incomplete: the limit of {limit.text('type') or 'the sample'}", "/limit")
    elif record.peek("error") and not record.out.has_replied():
        record.out.end_reply({"error": record.peek("error")}, "")
    return None


def _attach(value: JsonValue, attached: Mapping[str, JsonValue]) -> JsonValue:
    """Return a value with the texts that stand in the sample's attachments."""
    if isinstance(value, str) and value.startswith("attachment://"):
        return attached.get(value.removeprefix("attachment://"), value)
    if isinstance(value, list):
        return [_attach(item, attached) for item in value]
    return {name: _attach(item, attached) for name, item in value.items()} if isinstance(value, dict) else value


_CALLED = ("toolsCalled", "tools_called", "mcpToolsCalled", "mcp_tools_called")
_EXPECTED = ("expectedTools", "expected_tools")
_ANSWER = ("actualOutput", "actual_output")


@Format(
    score=72,
    signs=("turns: role content",),
    recognise=lambda record: (
        isinstance(record.get("input"), str) and not record.keys().isdisjoint((*_ANSWER, *_CALLED))
    ),
    hint="input with actualOutput or toolsCalled",
    gold=lambda record: _find_gold_calls(record, _EXPECTED, "inputParameters", "input_parameters"),
)
def deepeval(record: Cursor) -> Tools:
    """A DeepEval test case: a question with its answer, or turns, with the tools called.

    Members are in camel or in snake case. The tools that were called stand apart from the texts, with neither ids nor an order
    between them: they are read as calls of the reply, before its text.
    """
    record.take_all(*_EXPECTED)
    if "turns" not in record:
        record.out.say("user", record.text("input"))
        _read_called(record, *_ANSWER)
        if all(record.peek(name) is None for name in _CALLED):
            record.out.note_unread("call", "", "a call, of which the case says nothing,")
    for turn in record.items("turns", of="a turn"):
        if turn.text("role") == "assistant":
            _read_called(turn, "content")
        else:
            record.out.say("user", turn.text("content"))
    return None


def _read_called(holder: Cursor, *answer: str) -> None:
    with holder.out.reply():
        for name in _CALLED:
            for raw in holder.items(name, of="a call") if holder.peek(name) else ():
                call = take_call(raw)
                returned = next((key for key in ("output", "result") if raw.peek(key) is not None), "")
                result = ToolResult(read_result_content(raw.take(returned))) if returned else None
                holder.out.call(call, result)
        holder.out.add_text(holder.text(*answer))


def _find_gold_calls(
    record: JsonObject, names: Sequence[str], *arguments: str, ordered: bool = False
) -> dict[str, JsonValue] | None:
    """Return the calls that the first of these members expects, with their arguments in one of `arguments`."""
    raw = next((record[name] for name in names if record.get(name) is not None), None)
    calls: list[JsonValue] = []
    for call in list_objects(raw):
        given = next((call[one] for one in arguments if one in call), None)
        calls.append({"name": find_text(call, "name") or "", "arguments": given})
    return None if raw is None else {"format": "calls", "calls": calls, **({"ordered": True} if ordered else {})}


@Format(
    score=73,
    signs=("user_input",),
    gold=lambda record: _find_gold_calls(record, ("reference_tool_calls",), "args", ordered=True),
)
def ragas(record: Cursor) -> Tools:
    """A ragas sample: a conversation in `user_input`, or a question with its `response`.

    Messages are LangChain's without ids, so that a result belongs to the call before it, in order.
    """
    record.take("reference_tool_calls")
    if question := record.text("user_input"):
        record.out.say("user", question)
    for message in record.items("user_input", of="a message") if not question else ():
        content = find_object(message.members, "content")
        speaker = find_speaker(message, "type", "role")
        if speaker is not None and "text" in content:  # `to_dict` puts text and calls into the content
            read_reply_message(message.child("content"), "text")
        else:
            read_message(message, speaker)
    if answer := record.text("response"):
        record.out.say("assistant", answer)
    return None

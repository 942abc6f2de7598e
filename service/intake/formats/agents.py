"""What agents did, as their frameworks record it: Google's ADK, ATIF, CrewAI, smolagents, Assistants, Claude Code, Codex.

The last two keep a session as the lines of a file, which a record has in `lines`.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Sequence
from functools import partial

from pydantic import JsonValue

from service.core.json.members import JsonObject, as_text, find_object, list_objects
from service.core.trace import ToolCall, ToolResult
from service.intake.build import Transcript
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools, holds, list_at, split_list
from service.intake.messages import find_speaker, read_input, read_message, read_messages, read_reply_message
from service.intake.parts import add_part, add_result, take_call
from service.intake.texts import build_tool_call, list_statement_calls, parse_text
from service.intake.tools import read_tools


@Format(
    score=93,
    signs=("events: author content", "conversation: userContent", "conversation: user_content"),
    split=partial(split_list, names=("eval_cases", "evalCases")),
)
def adk(record: Cursor) -> Tools:
    """A session of Google's ADK, or a case of its eval sets.

    Members are in camel or in snake case. A piece of a stream (`partial`) is repeated by the whole event, or else its reply is
    not whole. What was said as audio is read as it was transcribed. Events that a rewind withdrew are left out.
    """
    record.out.id = record.text("eval_id", "evalId") or None
    withdrawn, piece = _list_withdrawn(record), ""
    for event in record.items("events", of="an event"):
        content = event.child("content", of="a content")
        event.take_all("author", "invocationId", "invocation_id", "timestamp")
        if event.path in withdrawn:
            event.drop()
            content.drop()
        elif event.flag("partial"):
            content.leave("a piece of a stream")
            piece = event.path
        else:
            _read_whole_event(event, content)
            piece = ""
    if piece:
        record.out.end_with("unfinished", piece)
    for turn in record.items("conversation", of="an invocation"):
        _read_invocation(turn)
    return None


def _read_whole_event(event: Cursor, content: Cursor) -> None:
    parts = list_objects(content.peek("parts"))  # results have the role of the user
    returns = any("functionResponse" in part or "function_response" in part for part in parts)
    if content.text("role") == "model" or (content and event.peek("author") != "user" and not returns):
        read_reply_message(content)
        event.out.end_reply(event.members, event.path)
    elif content:
        read_input(content, "user")
    if heard := event.child("inputTranscription", "input_transcription").text("text"):
        event.out.say("user", heard)
    if spoken := event.child("outputTranscription", "output_transcription").text("text"):
        event.out.say("assistant", spoken)
    if code := event.text("errorCode", "error_code"):
        event.out.end_with(f"error: {code}", event.path)


def _list_withdrawn(record: Cursor) -> set[str]:
    """Return the pointers of the events that a later rewind withdrew: all from the invocation that it names."""
    events = list(list_objects(record.peek("events")))
    names = [event.get("invocationId", event.get("invocation_id")) for event in events]
    withdrawn: set[str] = set()
    for index, event in enumerate(events):
        actions = find_object(event, "actions")
        target = actions.get("rewindBeforeInvocationId", actions.get("rewind_before_invocation_id"))
        if target is not None and target in names[:index]:
            withdrawn |= {f"/events/{place}" for place in range(names.index(target), index)}
    return withdrawn


def _read_invocation(turn: Cursor) -> None:
    asked = turn.child("userContent", "user_content", of="a content")
    asked.take("role")
    read_input(asked, "user")
    data = turn.child("intermediateData", "intermediate_data")
    for place, call in enumerate(data.items("toolUses", "tool_uses", of="a call")):
        turn.out.call(take_call(call), parallel=place > 0)
    for result in data.items("toolResponses", "tool_responses", of="a result"):
        add_result(result)
    answer = turn.child("finalResponse", "final_response", of="a content")
    if answer:
        answer.take("role")
        read_reply_message(answer)


@Format(
    score=92,
    recognise=lambda record: (
        str(record.get("schema_version")).startswith("ATIF")
        or ("agent" in record and holds(record, "steps", "source", "step_id"))
    ),
    hint="a schema_version of ATIF, or steps with a source, and an agent",
)
def atif(record: Cursor) -> Tools:
    """An ATIF trajectory, as Harbor writes it; `callgrade convert --to atif` writes one.

    Versions 1.0 to 1.8. A step of the agent holds its text, its calls and, in `observation`, what they returned. The format has
    no sign of a failed call. A step copied from another trajectory is context; a trajectory that goes on in another file is not
    whole.
    """
    record.out.id = record.text("trajectory_id") or record.text("session_id") or None
    for step in record.items("steps", of="a step"):
        source = step.text("source")
        step.take_all("step_id", "timestamp", "model_name")
        if source == "agent":
            read_reply_message(step, "message")
            for result in step.child("observation").items("results", of="a result"):
                add_result(result)
        elif source in ("user", "system"):
            read_input(step, "user" if source == "user" else "system", "message")
        else:
            step.leave("a step of an unknown source", holds="text")
    if record.peek("continued_trajectory_ref"):
        record.out.end_with("unfinished", "/continued_trajectory_ref")
    agent = record.child("agent")
    return read_tools(agent.take("tool_definitions"), path="/agent/tool_definitions")


@Format(score=87, signs=("raw description expected_output", "tasks_output: raw description expected_output"))
def crewai(record: Cursor) -> Tools:
    """A CrewOutput or TaskOutput of CrewAI, with the messages of its tasks.

    `raw` is the task's answer, usually the last message again. Of a task without messages only its answer is known.
    """
    tasks = record.list_nodes("tasks_output")
    for task in tasks or [record]:
        _read_task(task)
    if tasks:
        _add_answer(record.out, record.text("raw"))
    return None


def _read_task(task: Cursor) -> None:
    question = task.text("description")
    task.take_all("summary", "name", "expected_output", "pydantic", "json_dict")
    if task.peek("messages"):
        read_messages(task.items("messages", of="a message"), error_prefix="Error executing tool")
        for failure in task.items("tool_failures", of="a failure"):
            failure.leave("a failure", by_id=False)
    else:
        task.out.say("user", question)
        task.out.note_unread("call", task.path, "a call in the messages of a task, which the output lacks,")
    _add_answer(task.out, task.text("raw"))


_SILENT = frozenset(dir(builtins)) | {"final_answer"}
"""What code calls beside tools."""


@Format(score=83, signs=("steps: step_number tool_calls",))
def smolagents(record: Cursor) -> Tools:
    """The steps of a smolagents agent's memory: a list of them, or `steps`.

    The steps are as `get_full_steps` and `get_succinct_steps` return them. A code agent has one tool, `python_interpreter`: the
    tools of the user are called in its code. A call there is read where it is a statement of its own, assigned or printed, with
    literal arguments under their names; any other is unread. Observations are those of a step: with one call they are what it
    returned, with several nobody knows which returned what. A step that failed has its calls in the model's message alone.
    """
    for step in record.items("steps", of="a step"):
        if "step_number" in step:
            _read_action(step)
        elif "task" in step:
            record.out.say("user", step.text("task"))
        elif "system_prompt" in step:
            record.out.say("system", step.text("system_prompt"))
        elif "output" in step:
            _add_answer(record.out, step.take("output"))
        else:
            step.leave("a plan" if "plan" in step else "a step of an unknown kind")
    return None


def _read_action(step: Cursor) -> None:
    step.take_all("model_input_messages", "model_output", "code_action")
    message, calls = step.child("model_output_message"), list[ToolCall]()
    final: JsonValue = None
    for listed in (step if step.peek("tool_calls") else message).items("tool_calls", of="a call"):
        call = take_call(listed)
        written = (call.arguments or {}).get("code", call.raw)
        code = as_text(step.peek("code_action")) or as_text(written) or ""
        for one in _list_code_calls(code, listed) if call.name == "python_interpreter" else (call,):
            if one.name == "final_answer":
                final = (one.arguments or {}).get("answer")
            else:
                calls.append(one)
    message.drop()
    for at, call in enumerate(calls):
        step.out.call(call, parallel=at > 0)
    failure = step.child("error").text("message")
    observed, answer = step.take("observations"), step.take("action_output")
    if len(calls) == 1 and (failure or observed is not None):
        step.out.answer(ToolResult(failure or parse_text(observed), bool(failure)))
    if step.flag("is_final_answer"):
        _add_answer(step.out, final if answer is None else answer)


def _list_code_calls(code: str, listed: Cursor) -> list[ToolCall]:
    calls: list[ToolCall] = []
    found = list_statement_calls(code)
    if found is None:
        listed.out.note_unread("call", listed.path, "a call in code that is no Python")
    for call in found or ():
        if call.name in _SILENT:
            continue
        if call.arguments is not None:
            calls.append(build_tool_call(None, call.name, call.arguments))
        elif "." not in call.name:
            listed.out.note_unread("call", listed.path, f"a call of {call.name[:60]!r} in code")
    return calls


def _add_answer(out: Transcript, answer: JsonValue) -> None:
    """Add an answer, unless it ends what was said last."""
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if text and not out.get_last_text().rstrip().endswith(text.rstrip()):
        out.say("assistant", text)


@Format(
    score=89,
    recognise=lambda record: "thread.run.step" in list_at(record, "steps/object", "data/object", "steps/data/object"),
    hint="steps, or a page's data, of the object thread.run.step",
)
def assistants(record: Cursor) -> Tools:
    """The run steps of an OpenAI Assistants thread, with its messages and its run if they are known.

    The API lists the newest first. Without the thread's `messages`, what a step says is only named. A function's output is null
    until it is submitted.
    """
    messages, steps = _list_page(record, "messages"), _list_page(record, "steps", "data")
    known = {as_text(message.peek("id")) for message in messages}
    for one in sorted([*messages, *steps], key=_get_time):
        details, status = one.child("step_details"), one.text("status")
        one.take_all("id", "type", "object", "created_at")
        if "role" in one:
            parts = one.parts("content")
            texts = [part.child("text").text("value") or part.text("text", "refusal") for part in parts]
            record.out.say("user" if one.text("role") == "user" else "assistant", "\n".join(texts))
        elif details.peek("type") == "tool_calls":
            record.out.say("assistant", "")
            for call in details.items("tool_calls", of="a call"):
                output = call.child("function").take("output")
                record.out.call(take_call(call), parallel=True)
                if output is not None:
                    record.out.answer(ToolResult(parse_text(output)))
        elif details.child("message_creation").text("message_id") not in known:
            record.out.miss_reply(one.path, "a message of which the run's steps hold only the id")
        if status not in ("", "completed"):
            record.out.end_with(status, f"{one.path}/status")
    run = record.child("run")
    if run.peek("status") not in (None, "completed"):
        record.out.end_with(run.text("status"), "/run/status")
    return read_tools(record.take("tools") or run.take("tools"))


def _list_page(record: Cursor, *names: str) -> Sequence[Cursor]:
    """Return the items of a list, or of a page of the API, oldest first."""
    for name in names:
        nodes = record.list_nodes(name) or record.child(name).list_nodes("data")
        if nodes:
            return nodes[::-1] if _get_time(nodes[0]) > _get_time(nodes[-1]) else nodes
    return ()


def _get_time(one: Cursor) -> float:
    time = one.peek("created_at")
    return time if isinstance(time, (int, float)) else 0.0


_ASIDE = frozenset(
    [
        *("summary", "progress", "attachment", "file-history-snapshot", "file-history-delta", "queue-operation"),
        *("mode", "permission-mode", "last-prompt", "ai-title", "custom-title", "agent-name", "cost-state", "system"),
    ]
)
"""Lines that are none of the conversation."""


def _name_claude_code_session(line: JsonObject) -> str | None:
    """Return the session that a line of a file belongs to, "" if that of the lines around it."""
    named = as_text(line.get("sessionId")) if "type" in line and "messages" not in line else None
    return "" if named is None and "leafUuid" in line else named


@Format(score=95, hint="lines with a sessionId and a type", session=_name_claude_code_session)
def claude_code(record: Cursor) -> Tools:
    """A session of Claude Code: a file of its lines, or `lines`.

    One message may stand in several lines. A line that stands twice, and calls that a replay repeats, count once. Lines of
    sub-agents (`isSidechain`) belong to other traces.
    """
    record.out.id = next(
        (name for line in list_objects(record.peek("lines")) if (name := as_text(line.get("sessionId")))), None
    )
    seen: set[str] = set()
    spoken = ""
    calls: set[str] = set()
    for line in record.list_nodes("lines"):
        uuid = line.text("uuid")
        if line.flag("isSidechain") or (uuid and uuid in seen):
            line.drop()
        elif as_text(line.peek("type")) not in _ASIDE:
            message = line.child("message")
            goes_on = bool(spoken) and message.peek("id") == spoken
            spoken = as_text(message.peek("id")) or ""
            _read_line(line, calls, goes_on=goes_on)
        seen.add(uuid)
    return None


def _read_line(line: Cursor, calls: set[str], *, goes_on: bool) -> None:
    """Read a line. `goes_on`: it holds more parts of the message before it."""
    message = line.child("message", of="a message")
    parts = [part for part in list_objects(message.peek("content")) if part.get("type") == "tool_use"]
    made = {f"{part.get('id')} {part.get('name')}" for part in parts}
    line.take("toolUseResult")
    if not message:
        if line.peek("type") == "result" and line.flag("is_error"):
            line.out.end_with("error", f"{line.path}/is_error")
        if line.peek("type") == "assistant":
            line.out.miss_reply(line.path, "a line that lacks its message")
        line.leave("a line without a message", holds="result" if line.peek("type") == "user" else "other")
        return
    line.take("type")
    if line.flag("isApiErrorMessage"):
        message.drop()
        line.out.miss_reply(message.path, "a reply that the API failed to give")
    elif made and made <= calls:
        message.drop()  # a replay
    elif goes_on:
        message.take("role")
        for part in message.parts("content"):
            add_part(part)
        line.out.end_reply(message.members, message.path)
    else:
        read_message(message, find_speaker(message))
    calls |= made


_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def _name_codex_session(line: JsonObject) -> str | None:
    """Return the session that a line belongs to: a file holds one."""
    return "rollout" if "payload" in line and "timestamp" in line and "type" in line else None


@Format(score=94, hint="lines with a payload and a timestamp", session=_name_codex_session)
def codex(record: Cursor) -> Tools:
    """A rollout of Codex: a file of its lines, or `lines`.

    Lines of the type `response_item` hold items of the Responses API; the others repeat them or say what they cost. A command
    failed if its exit code is not 0.
    """
    for line in record.list_nodes("lines"):
        payload, kind = line.child("payload", of="an item"), line.peek("type")
        if not payload and kind == "response_item":
            record.out.miss_reply(line.path, "a line that lacks its item")
        if not payload:
            line.leave("a line that is no item")
            continue
        line.take_all("timestamp", "type")
        if kind == "session_meta":
            record.out.id = payload.text("id") or record.out.id
        elif kind != "response_item":
            payload.leave("a line that is no item")
        elif payload.peek("type") in _OUTPUTS:
            _read_output(payload)
        else:
            read_messages([payload])
    return None


def _read_output(payload: Cursor) -> None:
    payload.take("type")
    returned = parse_text(payload.take("output"))
    holder = returned if isinstance(returned, dict) and "output" in returned else {}
    code = find_object(holder, "metadata").get("exit_code")
    content = parse_text(holder["output"]) if holder else returned
    result = ToolResult(content, isinstance(code, int) and code != 0)
    payload.out.add_result(payload.text("call_id") or None, result, path=payload.path)

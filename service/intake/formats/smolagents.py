"""smolagents: the steps of an agent's memory, as `get_full_steps` and `get_succinct_steps` return them, in `steps`.

A code agent has one tool, `python_interpreter`: the tools of the user are called in its code. A call there is read where it
is a statement of its own, assigned or printed, with literal arguments under their names; any other is unread. Observations
are those of a step: with one call they are what it returned, with several nobody knows which returned what. A step that failed
has its calls in the model's message alone.
"""

from __future__ import annotations

import builtins
import json

from pydantic import JsonValue

from service.core.json.members import as_text, list_objects
from service.core.trace import ToolCall, ToolResult
from service.intake.build import Transcript
from service.intake.calls import build_tool_call
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.parts import take_call
from service.intake.python_text import list_statement_calls
from service.intake.texts import parse_text

_SILENT = frozenset(dir(builtins)) | {"final_answer"}
"""What code calls beside tools."""


def _read(record: Cursor) -> Tools:
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
    """Read one step: what the model called, and what came of it."""
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
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if text != out.get_last_text():
        out.say("assistant", text)


FORMATS = (
    Format(
        name="smolagents",
        read=_read,
        recognise=lambda record: any(
            "step_number" in step and "tool_calls" in step for step in list_objects(record.get("steps"))
        ),
        score=83,
        summary="The steps of a smolagents agent's memory: a list of them, or `steps`.",
        hint="steps with a step_number and tool_calls",
    ),
)

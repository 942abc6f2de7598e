"""DeepEval test cases, with members in camel or in snake case: one question and answer, or the `turns` of a conversation.

The tools that were called stand apart from the texts, with neither ids nor an order between them: they are read as calls
of the reply, before its text. `expected_tools` are the gold.
"""

from __future__ import annotations

from pydantic import JsonValue

from service.core.json.members import JsonObject, find_text, list_objects
from service.core.trace import ToolResult
from service.intake.calls import read_result_content
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.parts import take_call
from service.intake.speech import Speech

_CALLED = ("toolsCalled", "tools_called", "mcpToolsCalled", "mcp_tools_called")
_EXPECTED = ("expectedTools", "expected_tools")
_ANSWER = ("actualOutput", "actual_output")


def _read(record: Cursor) -> Tools:
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


def _read_gold(record: JsonObject) -> dict[str, JsonValue] | None:
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


def _recognise(record: JsonObject) -> bool:
    turns = [turn for turn in list_objects(record.get("turns")) if "role" in turn and "content" in turn]
    asked = isinstance(record.get("input"), str) and any(name in record for name in _ANSWER)
    return asked or bool(turns) or (isinstance(record.get("input"), str) and any(name in record for name in _CALLED))


FORMATS = (
    Format(
        name="deepeval",
        read=_read,
        recognise=_recognise,
        score=72,
        summary="A DeepEval test case: a question with its answer, or turns, with the tools called.",
        hint="input with actualOutput or toolsCalled, or turns",
        gold=_read_gold,
    ),
)

"""Google ADK: a session with its `events`, or a case of an eval set with its `conversation` of invocations.

Members are in camel or in snake case. A piece of a stream (`partial`) is repeated by the whole event. Events that a rewind
withdrew are left out.
"""

from __future__ import annotations

from service.core.json.members import JsonObject, list_objects
from service.intake.cursor import Cursor
from service.intake.format import Format, Tools
from service.intake.messages import read_input, read_reply_message
from service.intake.parts import add_result, take_call


def _read(record: Cursor) -> Tools:
    record.out.id = record.text("eval_id", "evalId") or None
    withdrawn = _list_withdrawn(record)
    for event in record.items("events", of="an event"):
        content = event.child("content", of="a content")
        parts = list_objects(content.peek("parts"))  # results have the role of the user
        returns = any("functionResponse" in part or "function_response" in part for part in parts)
        event.take_all("author", "invocationId", "invocation_id", "timestamp")
        if event.path in withdrawn:
            event.drop()
            content.drop()
        elif event.flag("partial"):
            content.leave("a piece of a stream")
        elif content.text("role") == "model" or (content and event.peek("author") != "user" and not returns):
            read_reply_message(content)
            record.out.end_reply(event.members, event.path)
        elif content:
            read_input(content, "user")
        elif event.peek("errorCode") or event.peek("error_code"):
            record.out.miss_reply(event.path, "a reply that failed")
    for turn in record.items("conversation", of="an invocation"):
        _read_invocation(turn)
    return None


def _list_withdrawn(record: Cursor) -> set[str]:
    """Return the pointers of the events that a later rewind withdrew: all from the invocation that it names."""
    events = list(list_objects(record.peek("events")))
    withdrawn: set[str] = set()
    for index, event in enumerate(events):
        actions = event.get("actions")
        before = actions if isinstance(actions, dict) else {}
        target = before.get("rewindBeforeInvocationId", before.get("rewind_before_invocation_id"))
        named = [event.get("invocationId", event.get("invocation_id")) for event in events[:index]]
        if target is not None and target in named:
            withdrawn |= {f"/events/{place}" for place in range(named.index(target), index)}
    return withdrawn


def _read_invocation(turn: Cursor) -> None:
    asked = turn.child("userContent", "user_content", of="a content")
    asked.take("role")
    read_input(asked, "user")
    data = turn.child("intermediateData", "intermediate_data")
    for place, call in enumerate(data.items("toolUses", "tool_uses", of="a call")):
        turn.out.call(take_call(call), parallel=place > 0)
    for result in data.items("toolResponses", "tool_responses", of="a result"):
        add_result(turn.out, result)
    answer = turn.child("finalResponse", "final_response", of="a content")
    if answer:
        answer.take("role")
        read_reply_message(answer)


def _split(record: JsonObject) -> list[tuple[str, JsonObject]] | None:
    """Return the cases of an eval set."""
    cases = list(list_objects(record.get("eval_cases") or record.get("evalCases")))
    return [(f"/eval_cases/{index}", case) for index, case in enumerate(cases)] or None


def _recognise(record: JsonObject) -> bool:
    events = any("author" in event and "content" in event for event in list_objects(record.get("events")))
    turns = list_objects(record.get("conversation"))
    return events or any("userContent" in turn or "user_content" in turn for turn in turns)


FORMATS = (
    Format(
        name="adk",
        read=_read,
        recognise=_recognise,
        score=93,
        summary="A session of Google's ADK, or a case of its eval sets.",
        hint="events with an author and a content, or a conversation of invocations",
        split=_split,
    ),
)

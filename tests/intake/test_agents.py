"""Several agents in one trace: whose tools, whose words, whose mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from service import score
from service.core.trace import Trace
from service.errors import InputError
from service.intake.reading import read_trace
from service.intake.writing import write_record

SCHEMA = {"type": "object", "properties": {"booking_id": {"type": "string"}}, "required": ["booking_id"]}
CANCEL: dict[str, Any] = {"name": "cancel_booking", "parameters": SCHEMA}
ASK: dict[str, Any] = {
    "name": "ask_desk",
    "parameters": {"type": "object", "properties": {"request": {"type": "string"}}},
}
ASKED = "Please cancel my booking KL4410."
INVENTED = "Cancel the booking KL9923 now."


def genai(name: str, at: int, within: str | None, kind: str, agent: str | None, **said: Any) -> dict[str, Any]:
    """A span under OTel GenAI. Only the spans of agents name them."""
    attributes = {"gen_ai.operation.name": kind} | ({"gen_ai.agent.name": agent} if kind == "invoke_agent" else {})
    for key, messages in said.items():
        written = messages if key == "tools" else [{"role": role, "parts": parts} for role, parts in messages]
        attributes[{"tools": "gen_ai.tool.definitions"}.get(key, f"gen_ai.{key}.messages")] = json.dumps(written)
    return {"span_id": name, "parent_id": within, "name": kind, "attributes": attributes} | timed(at)


def openinference(name: str, at: int, within: str | None, kind: str, agent: str | None, **said: Any) -> dict[str, Any]:
    """A span as the Agents SDK's instrumentation by OpenInference writes it: the span of an agent bears its name."""
    attributes: dict[str, Any] = {"openinference.span.kind": "AGENT" if kind == "invoke_agent" else "LLM"}
    for key in ("input", "output"):
        for n, (role, parts) in enumerate(said.get(key, ())):
            place = f"llm.{key}_messages.{n}.message"
            attributes[f"{place}.role"] = role
            for part in parts:
                if part["type"] == "text":
                    attributes[f"{place}.content"] = part["content"]
                else:
                    call = f"{place}.tool_calls.0.tool_call"
                    attributes |= {f"{call}.id": part["id"], f"{call}.function.name": part["name"]}
                    attributes[f"{call}.function.arguments"] = json.dumps(part["arguments"])
    for n, tool in enumerate(said.get("tools", ())):
        attributes[f"llm.tools.{n}.tool.json_schema"] = json.dumps(tool)
    return {"span_id": name, "parent_id": within, "name": agent or "generation", "attributes": attributes} | timed(at)


def logfire(name: str, at: int, within: str | None, kind: str, agent: str | None, **said: Any) -> dict[str, Any]:
    """A span as Logfire writes it of the Agents SDK: a template and a name."""
    span = genai(name, at, within, kind, agent, **said)
    if kind == "invoke_agent":
        span["attributes"] = {"logfire.msg_template": "Agent run: {name!r}", "name": agent}
    return span


def timed(at: int) -> dict[str, int]:
    return {"start_time": 10**18 + 10 * at, "end_time": 10**18 + 10 * at + 5}


def say(role: str, text: str) -> tuple[str, list[Any]]:
    return role, [{"type": "text", "content": text}]


def call(name: str, call_id: str, **arguments: Any) -> tuple[str, list[Any]]:
    return "assistant", [{"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}]


def delegate(span: Any, told: str, booking: str) -> list[dict[str, Any]]:
    """A front desk that asks the bookings desk to do something."""
    return [
        span("1", 0, None, "invoke_agent", "front"),
        span("2", 1, "1", "chat", None, tools=[ASK], input=[say("user", ASKED)], output=[call("ask_desk", "a", request=told)]),
        span("3", 2, "1", "invoke_agent", "bookings"),
        span(
            "4", 3, "3", "chat", None, tools=[CANCEL],
            input=[say("user", told)], output=[call("cancel_booking", "b", booking_id=booking)],
        ),
    ]  # fmt: skip


def events(told: str, booking: str) -> list[dict[str, Any]]:
    return [
        {"tools": [ASK], "agent": "front"},
        {"tools": [CANCEL], "agent": "bookings"},
        {"user": ASKED, "agent": "front"},
        {"call": {"name": "ask_desk", "arguments": {"request": told}}, "agent": "front"},
        {"assistant": told, "agent": "front", "to": "bookings"},
        {"call": {"name": "cancel_booking", "arguments": {"booking_id": booking}}, "agent": "bookings"},
    ]


def record(form: str, told: str, booking: str) -> dict[str, Any]:
    if form == "callgrade":
        return {"format": form, "events": events(told, booking)}
    span = {"genai": genai, "openinference": openinference, "logfire": logfire}[form]
    return {"format": "spans", "spans": delegate(span, told, booking)}


FORMS = ("callgrade", "genai", "openinference", "logfire")


def findings(trace: dict[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    report = score({"trace": trace, "judges": "off"})
    return report.verdict, [(finding.code, finding.message) for finding in report.findings()]


@pytest.mark.parametrize("form", FORMS)
def test_what_an_agent_invents_for_another_is_suspected_in_the_call_that_uses_it(form: str) -> None:
    verdict, [(code, message)] = findings(record(form, INVENTED, "KL9923"))
    assert (verdict, code) == ("undecided", "suspected_argument")
    assert message.startswith("bookings: ")
    assert "only in what the agent front wrote" in message


@pytest.mark.parametrize("form", FORMS)
def test_what_the_user_gave_stays_the_users_however_many_pass_it_on(form: str) -> None:
    assert findings(record(form, "Cancel the booking KL4410 now.", "KL4410"))[1] == []


@pytest.mark.parametrize("form", FORMS)
def test_whose_words_and_calls_they_are(form: str) -> None:
    trace = read_trace(record(form, INVENTED, "KL9923"))
    said = [(one.role, one.agent, one.to) for one in trace.messages if one.text]
    assert said == [("user", "front", None), ("agent", "front", "bookings")]
    assert [(step.agent, step.turn) for step in trace.steps] == [("front", 1), ("bookings", 1)]
    assert {agent: names(trace, agent) for agent in ("front", "bookings")} == {
        "front": ["ask_desk"],
        "bookings": ["cancel_booking"],
    }


def names(trace: Trace, agent: str) -> list[str]:
    return [tool.name for tool in trace.find_catalogue(agent).tools or ()]


@pytest.mark.parametrize("form", FORMS)
def test_it_reads_the_same_in_our_own_form(form: str) -> None:
    trace = read_trace(record(form, INVENTED, "KL9923"))
    again = read_trace(write_record(trace))
    assert (again.messages, [step.agent for step in again.steps]) == (
        trace.messages,
        [step.agent for step in trace.steps],
    )
    assert all(names(again, agent) == names(trace, agent) for agent in trace.catalogues if agent)


def test_the_tool_of_another_agent_is_not_on_offer() -> None:
    trace = record("callgrade", INVENTED, "KL9923")
    trace["events"][-1]["agent"] = "front"
    assert ("unknown_tool", "front: cancel_booking was not on offer") in findings(trace)[1]


def test_each_agent_has_its_own_tool_of_a_name() -> None:
    trace = record("callgrade", "Cancel the booking KL4410 now.", "KL4410")
    number = {"type": "object", "properties": {"booking_id": {"type": "integer"}}}
    trace["events"][0]["tools"] = [ASK, {"name": "cancel_booking", "parameters": number}]
    assert findings(trace)[1] == []
    trace["events"][-1]["agent"] = "front"
    assert [code for code, _ in findings(trace)[1]] == ["schema_type"]


@pytest.mark.parametrize("wrapped", [False, True])
def test_what_another_agent_replied_is_no_source_though_a_call_returned_it(*, wrapped: bool) -> None:
    reply = "Your booking is KL9923."
    result = {"content": [{"type": "text", "text": reply}]} if wrapped else reply
    trace = {
        "format": "callgrade",
        "tools": [ASK, CANCEL],
        "events": [
            {"user": "Please cancel my booking.", "agent": "front"},
            {
                "call": {"name": "ask_desk", "arguments": {"request": "Which booking?"}},
                "agent": "front",
                "result": result,
            },
            {"assistant": reply, "agent": "bookings"},
            {"call": {"name": "cancel_booking", "arguments": {"booking_id": "KL9923"}}, "agent": "front"},
        ],
    }
    verdict, found = findings(trace)
    assert verdict == "undecided"
    assert [message for code, message in found if code == "suspected_argument"] == [
        'front: "KL9923" stands only in what the agent bookings wrote'
    ]


def test_a_users_words_within_an_agent_that_only_wraps_others_are_the_users() -> None:
    spans = delegate(genai, ASKED, "KL4410")
    trace = read_trace({"format": "spans", "spans": [spans[0], *spans[2:]]})
    assert [(one.role, one.agent) for one in trace.messages if one.text] == [("user", None)]


def test_after_a_handoff_the_next_agent_is_sent_what_the_user_said() -> None:
    handoff = call("transfer_to_bookings", "a")
    spans = [
        openinference("1", 0, None, "invoke_agent", "front"),
        openinference("2", 1, "1", "chat", None, input=[say("user", ASKED)], output=[handoff]),
        openinference("3", 2, None, "invoke_agent", "bookings"),
        openinference("4", 3, "3", "chat", None, input=[say("user", ASKED), handoff],
                      output=[call("cancel_booking", "b", booking_id="KL4410")]),
    ]  # fmt: skip
    trace = read_trace({"format": "spans", "spans": spans})
    assert [one.role for one in trace.messages if one.text] == ["user"]
    assert [step.agent for step in trace.steps] == ["front", "bookings"]
    assert findings({"format": "spans", "spans": spans})[1] == []


def test_beside_each_other_an_agents_words_are_known_word_for_word() -> None:
    spans = delegate(genai, INVENTED, "KL9923")
    spans[2]["parent_id"] = None
    assert [one.role for one in read_trace({"format": "spans", "spans": spans}).messages if one.text] == [
        "user",
        "agent",
    ]


def test_only_an_assistant_writes_to_another_agent() -> None:
    with pytest.raises(InputError, match="/events/0/to: only an assistant"):
        read_trace({"format": "callgrade", "events": [{"user": "Hi", "to": "bookings"}]})


@pytest.mark.shared_data
def test_the_shared_rows(shared_data: Path) -> None:
    file = shared_data.parent / "cases" / "more_cases.jsonl"
    if not file.exists():
        pytest.skip(f"no cases at {file}")
    rows = [row for row in map(json.loads, file.read_text("utf-8").splitlines()) if row["id"].startswith("agents_")]
    assert rows
    for row in rows:
        report = score({**row["request"], "judges": "off"})
        assert report.verdict in row["allowed"], row["id"]
        assert report.findings(), row["id"]

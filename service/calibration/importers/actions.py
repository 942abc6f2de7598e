"""Next actions with one label each: human thumbs as in Taskmaster-4, and gold decisions as in When2Call. Each ends a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import JsonValue

from service.calibration.labels import AnnotatorLabel, LabelledItem
from service.core.json.parsing import UnreadableError, parse

CALLING = "tool_call"
"""The When2Call answer that is a call; the others are texts."""


def read_thumb(row: Mapping[str, Any]) -> Iterator[LabelledItem]:
    """Read one next action with a thumb up or down. The label is of the whole action, not of a step."""
    action = row["generation"]
    calls: dict[str, Any] = action.get("api") or {}
    events: list[JsonValue] = [event for turn in row["context"] for event in _list_events(turn)]
    last: list[JsonValue] = [_build_call(name, arguments) for name, arguments in calls.items()]
    trace: dict[str, JsonValue] = {
        "format": "callgrade",
        "id": row["id"],
        "events": [*_join_results(events), *(last or [{"assistant": action.get("text") or ""}])],
    }
    yield LabelledItem(
        id=row["id"],
        criterion="action",
        trace=trace,
        labels=(AnnotatorLabel(annotator="thumb", label=_read_reward(row["human_reward"])),),
        source="taskmaster-4",
        group=row["conversation_id"],
        stratum="call" if calls else "text",
        family=",".join(sorted(calls)) or "text",
    )


def _read_reward(reward: float) -> bool:
    if reward not in (0, 1):
        raise ValueError(f"human_reward is 0 or 1, not {reward!r}")
    return bool(reward)


def _list_events(turn: Mapping[str, Any]) -> Iterator[JsonValue]:
    calls: dict[str, JsonValue] = turn.get("api") or {}
    results: dict[str, JsonValue] = turn.get("response") or {}
    for name, arguments in calls.items():
        yield _build_call(name, arguments)
    for name, result in results.items():
        yield {"result of": name, "result": result}
    if turn.get("text"):
        yield {"assistant" if turn["role"] == "agent" else "user": turn["text"]}


def _build_call(name: str, arguments: JsonValue) -> dict[str, JsonValue]:
    return {"call": {"name": name or "unnamed", "arguments": arguments}}


def _join_results(events: list[JsonValue]) -> list[JsonValue]:
    """Attach each result to the latest open call of its name; drop a result without such a call."""
    joined: list[JsonValue] = []
    for event in [cast("dict[str, JsonValue]", one) for one in events]:
        if "result of" not in event:
            joined.append(event)
            continue
        open_calls = [one for one in joined if isinstance(one, dict) and _awaits_result(one, event["result of"])]
        if open_calls:
            open_calls[-1]["result"] = event["result"]
    return joined


def _awaits_result(event: dict[str, JsonValue], name: JsonValue) -> bool:
    call = event.get("call")
    return isinstance(call, dict) and call["name"] == (name or "unnamed") and "result" not in event


def read_decision(row: Mapping[str, Any]) -> Iterator[LabelledItem]:
    """Read one item for each candidate answer; only the right one passes. Known in advance, so this is no human agreement."""
    if row["correct_answer"] not in row["answers"]:
        raise ValueError(f"correct_answer is {row['correct_answer']!r}, which is not among the answers")
    question: dict[str, JsonValue] = {
        "question": [[{"role": "user", "content": row["question"]}]],
        "functions": [parse(tool) for tool in row["tools"]],
    }
    for decision, text in sorted(row["answers"].items()):
        output: dict[str, JsonValue] = {"calls": _read_calls(text)} if decision == CALLING else {"result": text}
        yield LabelledItem(
            id=f"{row['uuid']}/{decision}",
            criterion="decide",
            step="decide",
            trace={"format": "bfcl", "id": row["uuid"], **question, **output},
            labels=(AnnotatorLabel(annotator="gold", label=decision == row["correct_answer"]),),
            source="when2call",
            group=row["source_id"],
            origin="gold",
            stratum=decision,
        )


def _read_calls(text: str) -> JsonValue:
    """Read the call of a candidate; ValueError where it is none."""
    try:
        call = parse(text)
    except UnreadableError as error:
        raise ValueError(f"{CALLING} is not JSON: {error}") from None
    name = call.get("name") if isinstance(call, dict) else None
    if not (isinstance(call, dict) and isinstance(name, str)):
        raise ValueError(f"{CALLING} names no tool")  # noqa: TRY004 (of data)
    return [{name: call.get("arguments") or {}}]

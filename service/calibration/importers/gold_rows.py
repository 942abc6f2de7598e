"""Rows whose right answer is known in advance: function-calling questions with an answer key, and complete dialogues.

They show no human agreement. A dialogue has no failing item: it shows how a judge rates faultless work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from service.calibration.labels import AnnotatorLabel, LabelledItem
from service.core.rubric import Stage

DECLINED = "None of the tools at hand can do that."
"""What the model says where it makes no call; the answer keys contain no text."""

JUDGED_STAGES: Mapping[str, Stage] = {"argument_plausibility": "arguments", "result_groundedness": "integrate"}
"""What a dialogue without its list of tools can show: arguments taken from the conversation, and texts based on results."""


def read_answer_key(row: Mapping[str, Any]) -> Iterator[LabelledItem]:
    """Read whether to call, from a row of the Berkeley leaderboard: an item that declines, and one that makes the key's calls.

    The latter only if the key has any. In an irrelevance category no tool fits, and declining is right.
    """
    due, calls = "irrelevance" not in row["category"], row["possible_answer"]
    yield _build_decision(row, "none", passes=not due, output={"result": DECLINED})
    if due and calls:
        yield _build_decision(row, "call", passes=True, output={"calls": [_pick_first(call) for call in calls]})


def _build_decision(row: Mapping[str, Any], name: str, *, passes: bool, output: dict[str, JsonValue]) -> LabelledItem:
    question: dict[str, JsonValue] = {"question": row["question"], "functions": row["function"]}
    return LabelledItem(
        id=f"{row['id']}/{name}",
        criterion="call_decision",
        step="decide",
        trace={"format": "bfcl", "id": row["id"], **question, **output},
        labels=(AnnotatorLabel(annotator="gold", label=passes),),
        source="bfcl",
        group=row["id"],
        origin="gold",
        stratum=row["category"],
    )


def _pick_first(call: Mapping[str, Any]) -> JsonValue:
    """Build the call with the first accepted value of each argument; leave out arguments that are optional, marked by "".

    >>> _pick_first({"f": {"a": [1, 2], "b": ["", "x"], "c": [{"d": ["y"], "e": 5, "g": []}]}})
    {'f': {'a': 1, 'c': {'d': 'y', 'e': 5, 'g': []}}}
    """
    return {name: _pick_arguments(accepted) for name, accepted in call.items()}


def _pick_arguments(accepted: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """In nested objects a value may stand alone where only one is accepted."""
    chosen = {name: values[0] if isinstance(values, list) and values else values for name, values in accepted.items()}
    return {name: _pick_arguments(one) if isinstance(one, dict) else one for name, one in chosen.items() if one != ""}


def read_tooltalk(row: Mapping[str, Any]) -> Iterator[LabelledItem]:
    """Read a dialogue of ToolTalk, in which an assistant message lists the calls made before it."""
    events: list[JsonValue] = []
    for message in row["conversation"]:
        for api in message.get("apis") or ():
            request = api["request"]
            events.append(_build_call(request["api_name"], request["parameters"], api["response"], api["exception"]))
        events.append({message["role"]: message["text"]})
    return _read_dialogue(row["conversation_id"], events, source="tooltalk", family=",".join(row["suites_used"]))


def read_apibank(row: Mapping[str, Any]) -> Iterator[LabelledItem]:
    """Read a dialogue of API-Bank: turns of the user, the model and the tools."""
    events: list[JsonValue] = []
    for turn in row["turns"]:
        if turn["role"] == "API":
            result = turn["result"]
            events.append(_build_call(turn["api_name"], turn["param_dict"], result["output"], result["exception"]))
        else:
            events.append({"user" if turn["role"] == "User" else "assistant": turn["text"]})
    return _read_dialogue(row["file"], events, source="api-bank")


def _build_call(name: str, arguments: JsonValue, result: JsonValue, exception: str | None) -> dict[str, JsonValue]:
    call: dict[str, JsonValue] = {"call": {"name": name, "arguments": arguments}}
    return {**call, "result": result} if exception is None else {**call, "result": exception, "is_error": True}


def _read_dialogue(name: str, events: list[JsonValue], *, source: str, family: str = "") -> Iterator[LabelledItem]:
    if not any(_is_call(event) for event in events):
        return
    trace: dict[str, JsonValue] = {"format": "callgrade", "id": name, "events": events}
    for criterion, step in JUDGED_STAGES.items():
        if criterion == "result_groundedness" and not _speaks_after_calls(events):
            continue
        yield LabelledItem(
            id=name,
            criterion=criterion,
            step=step,
            trace=trace,
            labels=(AnnotatorLabel(annotator="gold", label=True),),
            source=source,
            group=name,
            origin="gold",
            family=family,
        )


def _is_call(event: JsonValue) -> bool:
    return isinstance(event, dict) and "call" in event


def _speaks_after_calls(events: Iterable[JsonValue]) -> bool:
    listed = list(events)
    first = next(at for at, event in enumerate(listed) if _is_call(event))
    return any(isinstance(event, dict) and "assistant" in event for event in listed[first:])

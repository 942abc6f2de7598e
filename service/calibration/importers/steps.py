"""Agent runs whose steps people labelled: AgentProcessBench, with the labels of recorded judges, and AgentRx.

A step is an assistant message. Its label maps to a value as follows: 1 (right and useful) is 1.0, 0 (neutral or exploring) is
0.5, -1 (wrong or harmful) is 0.0; a step passes unless it is -1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from service.calibration.labels import AnnotatorLabel, LabelledItem
from service.calibration.predictions import Prediction

CRITERION = "step_quality"
VALUES: Mapping[int, float] = {1: 1.0, 0: 0.5, -1: 0.0}


def read_process(row: Mapping[str, Any]) -> Iterator[tuple[LabelledItem, tuple[Prediction, ...]]]:
    """Read the labelled steps of one run, in order, each with the predictions of the judges that labelled it."""
    for place in sorted(row["steps"], key=int):
        name, label = f"{row['id']}#{place}", row["steps"][place]
        item = LabelledItem(
            id=name,
            criterion=CRITERION,
            trace=_build_trace(row, int(place)),
            labels=(AnnotatorLabel(annotator="people", label=VALUES[label] > 0),),
            source="agentprocessbench",
            group=row["group"],
            stratum=row["domain"],
            family=row["domain"],
            run=row["id"],
            position=int(place),
        )
        yield item, tuple(_list_predictions(row["judges"], name, place))


def _list_predictions(judges: Mapping[str, Mapping[str, Any] | None], name: str, place: str) -> Iterator[Prediction]:
    for judge, labels in sorted(judges.items()):
        value: int | None = labels["steps"].get(place) if labels and labels.get("steps") else None
        if value is not None:
            yield Prediction(id=name, criterion=CRITERION, raw=VALUES[value], model=judge)


def _build_trace(row: Mapping[str, Any], place: int) -> dict[str, JsonValue] | None:
    """Build the trace up to the step, with the results of its calls; None where the set has no messages."""
    messages: Sequence[dict[str, Any]] = row.get("messages") or ()
    if place >= len(messages):
        return None
    end = place + 1
    while end < len(messages) and messages[end]["role"] == "tool":
        end += 1
    tools = {"tools": row["tools"]} if row.get("tools") else {}
    return {"format": "openai", "id": row["id"], "messages": [dict(one) for one in messages[:end]], **tools}


def read_failures(row: Mapping[str, Any]) -> Iterator[LabelledItem]:
    """Read the assistant messages of a retail run up to the first that people marked as failing; none for an unlabelled run.

    Nothing after a failure was labelled. A failure placed on anything but an assistant message is the user's, or off by one,
    and says nothing about a step: such a run is left out.
    """
    if not row["failures"]:
        return
    wrong = {int(one["message"]) - 1: one for one in row["failures"]}
    assistant_places = [at for at, one in enumerate(row["messages"]) if one["role"] == "assistant"]
    first = min(wrong)
    if first not in assistant_places:
        return
    for at in [at for at in assistant_places if at <= first]:
        failure = wrong.get(at, {})
        note = f"{failure['category']}: {failure['why']}" if failure else ""
        yield LabelledItem(
            id=f"{row['task_id']}#{at}",
            criterion=CRITERION,
            trace=_build_trace({"id": str(row["task_id"]), "messages": row["messages"]}, at),
            labels=(AnnotatorLabel(annotator="people", label=not failure, note=note),),
            source="agentrx",
            group=str(row["task_id"]),
            stratum="tau_retail",
            family=failure.get("category", ""),
            run=str(row["task_id"]),
            position=at,
        )

"""Published labelled sets in our own form, with the predictions of their recorded judges.

`python -m tests.real.published FILE > labels.jsonl` turns one into a file that `callgrade calibrate run --labels` reads. Error
spans of people and judges in texts: D2T-Eval and Quintd-1. Labelled steps of runs: AgentProcessBench, with recorded judges.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from service.calibration.labels import AnnotatorLabel, LabelledItem, build_labelled_set
from service.calibration.predictions import JudgedSet, Prediction
from service.core.judging.grades import grade_claims

CONTRADICTIONS = frozenset({"contradictory", "incorrect"})
"""The types of spans that fail a text: those that contradict the payload."""
OTHER_SPAN_VALUE = 0.5
"""The value of a claim in which a judge found fault, but none that fails the text: as `unsupported` of `result_groundedness`."""
STEP_VALUES: Mapping[int, float] = {1: 1.0, 0: 0.5, -1: 0.0}
"""A step that is right and useful, one that is neutral or explores, and one that is wrong or harmful; only the last fails."""

Rows = Iterator[tuple[LabelledItem, list[Prediction]]]


def read_published(lines: Iterable[str], *, source: str) -> JudgedSet:
    """Read a published set from JSON Lines."""
    items: list[tuple[int, LabelledItem]] = []
    predictions: list[Prediction] = []
    for number, line in enumerate(lines, 1):
        row = json.loads(line)
        for item, said in read_steps(row) if "steps" in row else read_spans(row):
            items.append((number, item))
            predictions += said
    return JudgedSet(build_labelled_set(items, source=source), tuple(predictions))


def read_spans(row: Mapping[str, Any]) -> Rows:
    """One text with the spans that each annotator and judge found wrong; more and worse spans lower a judge's value."""
    failing = [at for at, name in enumerate(row["span_types"]) if name in CONTRADICTIONS]
    said = {one["annotator"]: count_spans(one["spans"], failing) for one in reversed(row["human"])}
    names = dict.fromkeys(one["annotator"] for one in row["human"])
    item = LabelledItem(
        id=row["id"],
        criterion="result_groundedness",
        step="integrate",
        payload=row["payload"],
        answer=row["response"],
        labels=tuple([AnnotatorLabel(annotator=name, label=not said[name]) for name in names]),
        source=row["source"],
        group=row["payload_id"],
        stratum=f"{row['domain']}/{row['model']}",
        family=row["domain"],
    )
    yield item, [predict_from_spans(item, judge, spans, failing) for judge, spans in sorted(row["judges"].items())]


def predict_from_spans(
    item: LabelledItem, judge: str, spans: Sequence[Mapping[str, Any]], failing: Sequence[int]
) -> Prediction:
    """Spans are graded as claims are graded today: one that fails the text is worth 0, any other `OTHER_SPAN_VALUE`."""
    wrong = count_spans(spans, failing)
    grade = grade_claims("worst", [1.0, *[0.0] * wrong, *[OTHER_SPAN_VALUE] * (len(spans) - wrong)])
    ordered = sorted(spans, key=lambda span: span["type"] not in failing)
    reason = "; ".join([f"{span['text']!r}: {span.get('reason') or 'no reason'}" for span in ordered])
    return Prediction(id=item.id, criterion=item.criterion, raw=grade.graded, model=judge, reason=reason)


def count_spans(spans: Iterable[Mapping[str, Any]], failing: Sequence[int]) -> int:
    return sum(span["type"] in failing for span in spans)


def read_steps(row: Mapping[str, Any]) -> Rows:
    """The labelled steps of one run, in order, each with the predictions of the judges that labelled it."""
    for place in sorted(row["steps"], key=int):
        item = LabelledItem(
            id=f"{row['id']}#{place}",
            criterion="step_quality",
            trace=cut_run(row, int(place)),
            labels=(AnnotatorLabel(annotator="people", label=STEP_VALUES[row["steps"][place]] > 0),),
            source="agentprocessbench",
            group=row["group"],
            stratum=row["domain"],
            family=row["domain"],
            run=row["id"],
            position=int(place),
        )
        said = {
            judge: ((labels or {}).get("steps") or {}).get(place) for judge, labels in sorted(row["judges"].items())
        }
        yield (
            item,
            [
                Prediction(id=item.id, criterion=item.criterion, raw=STEP_VALUES[value], model=judge)
                for judge, value in said.items()
                if value is not None
            ],
        )


def cut_run(row: Mapping[str, Any], place: int) -> dict[str, JsonValue] | None:
    """The trace up to the step, with the results of its calls; None where the set has no messages."""
    messages: Sequence[dict[str, Any]] = row.get("messages") or ()
    if place >= len(messages):
        return None
    end = place + 1
    while end < len(messages) and messages[end]["role"] == "tool":
        end += 1
    tools = {"tools": row["tools"]} if row.get("tools") else {}
    return {"format": "openai", "id": row["id"], "messages": [dict(one) for one in messages[:end]], **tools}


def main(file: Path) -> None:
    """Write a published set as our own lines: items, then predictions."""
    with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
        found = read_published(lines, source=file.name)
    for one in (*found.labels.items, *found.predictions):
        sys.stdout.write(one.model_dump_json(exclude_defaults=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Judging labelled items, so that the judge can be fitted to the labels."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from pydantic import JsonValue

from service.calibrating.labels import LabelledItem
from service.calibrating.predictions import Prediction
from service.core.judged import Judged
from service.core.judges import JudgeCheck
from service.core.outcome import Errored, Skipped
from service.core.questions import ASSEMBLY
from service.core.report import JudgeMode, Report
from service.core.rubric import Criterion, Rubric
from service.errors import InputError
from service.io.engine import Engine
from service.request import read_request

TOGETHER = 64
"""Items that are judged at once."""


async def predictions_of(
    engine: Engine, items: Iterable[LabelledItem], rubric: Rubric, *, mode: JudgeMode = "live"
) -> tuple[list[Prediction], list[str]]:
    """What the rubric's judges say of the items, and why there is nothing for some: `id: reason`.

    Of several questions about one item the lowest value counts. InputError for a criterion that no judge of the rubric
    decides, and for a trace that cannot be read.
    """
    listed = list(items)
    made: list[Prediction] = []
    missing: list[str] = []
    for start in range(0, len(listed), TOGETHER):
        group = listed[start : start + TOGETHER]
        asked = [engine.answer_async(read_request(_request(item, rubric, mode))) for item in group]
        for item, report in zip(group, await asyncio.gather(*asked), strict=True):
            found = _prediction(item, report, rubric)
            if isinstance(found, Prediction):
                made.append(found)
            else:
                missing.append(f"{item.id}: {found}")
    return made, missing


def judged_by(rubric: Rubric, criterion: str) -> Criterion:
    """The criterion of that id, which a judge decides; InputError where there is none."""
    for one in rubric.criteria:
        if one.id == criterion and isinstance(one.check, JudgeCheck):
            return one
    known = [one.id for one in rubric.criteria if isinstance(one.check, JudgeCheck)]
    raise InputError.at(
        "/criterion", f"no judge of {rubric.id} decides {criterion!r}; known: {', '.join(known) or 'none'}"
    )


def _request(item: LabelledItem, rubric: Rubric, mode: JudgeMode) -> JsonValue:
    """A request that asks the judge alone: what code would decide in its place must not hide what it says."""
    criterion = judged_by(rubric, item.criterion)
    judge = criterion.check.judge if isinstance(criterion.check, JudgeCheck) else ""
    check: JsonValue = {"kind": "judge", "judge": judge}
    alone: JsonValue = {
        "id": "calibration",
        "criteria": [{"id": item.criterion, "stage": criterion.stage, "check": check}],
        "judges": [rubric.known_judges[judge].model_dump(mode="json")],
    }
    return {"rubric": alone, "trace": _trace(item), "judges": mode}


def _trace(item: LabelledItem) -> JsonValue:
    if item.trace is not None:
        return item.trace
    events: JsonValue = [
        {"call": {"name": "tool", "arguments": {}}, "result": item.payload},
        {"assistant": item.answer or ""},
    ]
    return {"format": "callgrade", "id": item.id, "events": events}


def _prediction(item: LabelledItem, report: Report, rubric: Rubric) -> Prediction | str:
    outcomes = [each.outcome for one in report.criteria for each in one.outcomes]
    outcomes += [outcome for step in report.steps for outcome in step.outcomes.values()]
    said = [outcome for outcome in outcomes if isinstance(outcome, Judged)]
    if not said:
        reasons = [outcome.reason for outcome in outcomes if isinstance(outcome, Skipped | Errored)]
        return reasons[0] if reasons else "the judge was not asked"
    worst = min(said, key=lambda outcome: outcome.raw)
    judge = rubric.known_judges[worst.judge.id]
    return Prediction(
        id=item.id,
        criterion=item.criterion,
        raw=worst.raw,
        judge=judge.id,
        judge_digest=judge.digest,
        model=worst.judge.model,
        assembly=ASSEMBLY,
    )

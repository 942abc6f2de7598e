"""What a human may label: criteria of a report, and the trace that a label is about, whole or up to a step."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from pydantic import JsonValue

from service.calibration.predictions import AnswerId
from service.calibration.report_predictions import build_prediction, choose_deciding, list_judged
from service.core.judging.judged_outcomes import JudgedScore, OpenJudgement
from service.core.judging.judges import JudgeCheck
from service.core.report import Report
from service.core.rubric import Criterion, Rubric
from service.core.trace import Trace
from service.reading.request import read_request, read_request_trace
from service.store.labelling.drafts import LabelItem

LEFT_TO_HUMANS = frozenset({"human", "uncalibrated"})
"""The causes of outcomes that a judge has seen and a human should decide."""


def list_label_items(report: Report, rubric: Rubric) -> tuple[LabelItem, ...]:
    """List the criteria of a report that a human may label: those of judges, where one has answered or the outcome is open.

    An item is a trace under a criterion; of several questions about it, the one with the lowest value is shown. The judge's
    prediction goes with the label where it stands for the whole criterion, as it does when labelled items are judged.
    """
    items: list[LabelItem] = []
    for criterion in rubric.criteria:
        if not isinstance(criterion.check, JudgeCheck):
            continue
        judged = list_judged(report, criterion.id)
        causes = {one.cause for one in report.open if one.criterion == criterion.id}
        if judged:
            items.append(_build_item(criterion, judged, causes, rubric))
        elif causes:
            items.append(LabelItem(criterion.id, criterion.stage))
    return tuple(items)


def _build_item(
    criterion: Criterion, judged: Sequence[JudgedScore | OpenJudgement], causes: set[str], rubric: Rubric
) -> LabelItem:
    worst = min(judged, key=lambda one: one.raw)
    fitted = worst.calibration.threshold
    predictions: str | None = None
    if choose_deciding(judged, criterion) is not None:
        one = build_prediction(AnswerId("-", criterion.id), worst, rubric)
        predictions = json.dumps([one.model_dump(mode="json", exclude_defaults=True)])
    return LabelItem(
        criterion.id,
        criterion.stage,
        bool(causes & LEFT_TO_HUMANS),
        worst.raw,
        worst.estimate if isinstance(worst, OpenJudgement) else worst.value,
        rubric.judges_by_id[worst.judge.id].threshold if fitted is None else fitted,
        # No verdict where the worst answer is left open, or passes while another is open.
        None if isinstance(worst, OpenJudgement) or (worst.passed and causes) else worst.passed,
        predictions,
    )


def read_subject_trace(request: JsonValue, document: Mapping[str, JsonValue] | None) -> Trace | None:
    """Read the trace that a label is about; None where there is none. InputError for one that cannot be read."""
    body = request or (None if document is None or "trace" not in document else {"trace": document["trace"]})
    return None if body is None else read_request_trace(read_request(cast("JsonValue", body)))


def cut_after(trace: Trace, step: int) -> Trace:
    """Cut the trace after a step and its result."""
    steps = trace.steps[: step + 1]
    messages, turn = trace.messages[: steps[-1].message + 1], steps[-1].turn
    return replace(trace, steps=steps, messages=messages, turns=turn, answer=None, output=None, state=None)

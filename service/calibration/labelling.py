"""The criteria of a report that a human may label: those of judges, where one has answered or the outcome is open."""

from __future__ import annotations

import json

from service.calibration.predictions import AnswerId
from service.calibration.report_predictions import build_prediction, choose_deciding, list_judged
from service.core.judging.judged_outcomes import JudgedScore
from service.core.judging.judges import JudgeCheck
from service.core.judging.withholding import WithheldJudgement
from service.core.report import Report
from service.core.rubric import Criterion, Rubric
from service.store.labelling.drafts import LabelItem

LEFT_TO_HUMANS = frozenset({"human", "uncalibrated"})
"""The causes of outcomes that a judge has seen and a human should decide."""


def list_label_items(report: Report, rubric: Rubric) -> tuple[LabelItem, ...]:
    """List the criteria of a report that a human may label: those of judges, where one has answered or the outcome is open.

    An item is a trace under a criterion; of several questions about it, the one with the lowest value is shown. The judge's
    prediction goes with the label where it stands for the whole criterion, as it does when labelled items are judged.
    """
    causes: dict[str, set[str]] = {}
    for one in report.open:
        causes.setdefault(one.criterion, set()).add(one.cause)
    items: list[LabelItem] = []
    for criterion in rubric.criteria:
        judged = list_judged(report, criterion.id) if isinstance(criterion.check, JudgeCheck) else []
        is_open = isinstance(criterion.check, JudgeCheck) and criterion.id in causes
        if judged or is_open:
            worst = min(judged, key=lambda one: one.raw, default=None)
            decides = choose_deciding(judged, criterion) is not None
            items.append(_build_item(criterion, worst, rubric, causes.get(criterion.id, set()), decides=decides))
    return tuple(items)


def _build_item(
    criterion: Criterion,
    worst: JudgedScore | WithheldJudgement | None,
    rubric: Rubric,
    causes: set[str],
    *,
    decides: bool,
) -> LabelItem:
    if worst is None:
        return LabelItem(criterion.id, criterion.stage)
    judge, value = (
        rubric.judges_by_id[worst.judge.id],
        worst.value if isinstance(worst, JudgedScore) else worst.estimate,
    )
    threshold = judge.threshold if worst.calibration.threshold is None else worst.calibration.threshold
    predictions = [build_prediction(AnswerId("-", criterion.id), worst, rubric)] if decides else []
    return LabelItem(
        criterion.id,
        criterion.stage,
        bool(causes & LEFT_TO_HUMANS),
        worst.raw,
        value,
        threshold,
        _read_verdict(worst, is_open=bool(causes)),
        json.dumps([one.model_dump(mode="json", exclude_defaults=True) for one in predictions])
        if predictions
        else None,
    )


def _read_verdict(worst: JudgedScore | WithheldJudgement, *, is_open: bool) -> bool | None:
    """Return the report's verdict on a criterion; None where the worst answer is left open, or passes while another is open."""
    if isinstance(worst, WithheldJudgement) or (worst.passed and is_open):
        return None
    return worst.passed

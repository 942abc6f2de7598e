"""What of a report a human may label: criteria of judges, where one has spoken or nobody could."""

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
"""The causes of outcomes that a judge has looked at, and that a human should."""


def list_label_items(report: Report, rubric: Rubric) -> tuple[LabelItem, ...]:
    """What of a report a human may label: criteria of judges, where one has spoken or nobody could.

    An item is a trace under a criterion; of several questions about it the one with the lowest value is shown. What a judge said
    goes with the label where it stands for the whole, as where labelled items are judged.
    """
    causes: dict[str, set[str]] = {}
    for one in report.open:
        causes.setdefault(one.criterion, set()).add(one.cause)
    found: list[LabelItem] = []
    for criterion in rubric.criteria:
        judged = list_judged(report, criterion.id) if isinstance(criterion.check, JudgeCheck) else []
        opened = isinstance(criterion.check, JudgeCheck) and criterion.id in causes
        if judged or opened:
            worst = min(judged, key=lambda one: one.raw, default=None)
            decides = choose_deciding(judged, criterion) is not None
            found.append(_build_item(criterion, worst, rubric, causes.get(criterion.id, set()), decides=decides))
    return tuple(found)


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
    said = [build_prediction(AnswerId("-", criterion.id), worst, rubric)] if decides else []
    return LabelItem(
        criterion.id,
        criterion.stage,
        bool(causes & LEFT_TO_HUMANS),
        worst.raw,
        value,
        threshold,
        _read_verdict(worst, is_open=bool(causes)),
        json.dumps([one.model_dump(mode="json", exclude_defaults=True) for one in said]) if said else None,
    )


def _read_verdict(worst: JudgedScore | WithheldJudgement, *, is_open: bool) -> bool | None:
    """What the report says of a criterion; None where the worst answer, or another beside one that passes, is left open."""
    if isinstance(worst, WithheldJudgement) or (worst.passed and is_open):
        return None
    return worst.passed

"""What is kept of a score, from the request and its report."""

from __future__ import annotations

from service.calibration.labelling import list_label_items
from service.core.report import Report
from service.core.rubric import Rubric
from service.reporting.breaks import describe_break
from service.request import ScoreRequest
from service.store.labelling.drafts import ScoreDraft


def draft_score(rubric: Rubric, request: ScoreRequest, report: Report, text: bytes) -> ScoreDraft:
    """What is kept of a score, but for the request as it came. `text`: the report as JSON."""
    used = report.rubric
    found = describe_break(report)
    broken = {name: getattr(found, name) for name in ("stage", "finding", "tool", "stages")}
    broken["cluster"] = report.tags.get("group", "")
    items = list_label_items(report, rubric)
    return ScoreDraft(f"{used.id}@{used.version}", report.verdict, report.score, request.tags, b"", text, items, broken)

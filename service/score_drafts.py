"""Build the stored form of a score from its request and report."""

from __future__ import annotations

from service.calibration.labelling import list_label_items
from service.core.report import Report
from service.core.rubric import Rubric
from service.reporting.breaks import describe_break
from service.request import ScoreRequest
from service.store.labelling.drafts import ScoreDraft


def draft_score(rubric: Rubric, request: ScoreRequest, report: Report, text: bytes) -> ScoreDraft:
    """Build what is stored of a score, except the request as it came. `text`: the report as JSON."""
    rubric_used = report.rubric
    break_ = describe_break(report)
    breaks = {name: getattr(break_, name) for name in ("stage", "finding", "tool", "stages")}
    breaks["cluster"] = report.tags.get("group", "")
    items = list_label_items(report, rubric)
    return ScoreDraft(
        f"{rubric_used.id}@{rubric_used.version}", report.verdict, break_.score, request.tags, b"", text, items, breaks
    )

"""What stands at the end of the page of a trace: what it took, what was on offer, how it was scored."""

from __future__ import annotations

from collections.abc import Iterator

from service.core.report import Report
from service.core.trace import ResourceUsage, Trace
from service.web.trace.marks import spell_unseen

MAX_TOOLS = 200


def describe_usage(usage: ResourceUsage | None) -> str:
    """Time, tokens and price in words; empty where nothing is told."""
    if usage is None:
        return ""
    parts = [
        "" if usage.duration_s is None else f"{usage.duration_s:.2f} s",
        "" if usage.input_tokens is None else f"{usage.input_tokens} tokens in",
        "" if usage.output_tokens is None else f"{usage.output_tokens} out",
        "" if usage.cost_usd is None else f"${usage.cost_usd:.4f}",
    ]
    return ", ".join(filter(None, parts))


def list_tools(trace: Trace | None, report: Report) -> tuple[tuple[str, str], ...] | None:
    """Name and description of the tools on offer; None where nobody tells."""
    if trace is not None and trace.tools is not None:
        found = [(tool.name, tool.description) for tool in trace.tools]
    elif report.offered is not None:
        found = [(name, "") for name in report.offered]
    else:
        return None
    return tuple([(spell_unseen(name[:200]), spell_unseen(told[:600])) for name, told in found[:MAX_TOOLS]])


def describe_calibration(report: Report) -> str:
    """How far what was judged rests on human labels; empty where nothing was."""
    found = report.calibration
    if not found.judged:
        return ""
    parts = [
        f"{count} {words}"
        for count, words in (
            (found.calibrated, "calibrated against human labels"),
            (found.uncalibrated, "uncalibrated"),
            (found.withheld, "left open by their calibration"),
        )
        if count
    ]
    return f"{found.judged} judged outcome{'s' if found.judged > 1 else ''}: {', '.join(parts)}"


def list_provenance(report: Report) -> Iterator[tuple[str, str]]:
    """What produced the report, by name."""
    made = report.provenance
    yield "rubric", f"{report.rubric.id}@{report.rubric.version}, sha256 {report.rubric.hash[:12]}"
    yield "engine", made.engine
    yield "judges", made.judges + (f", {made.judge_model}" if made.judge_model else "")
    if made.stand_in:
        yield "stand-in", "rules stood in for a model: what was judged means nothing"
    if made.replies:
        cost = "price unknown" if made.cost_usd is None else f"${made.cost_usd:.4f}"
        yield "replies", f"{made.replies}, {made.cache_hits} from the cache, {cost}"
    if made.calibrators != "uncalibrated":
        yield "fits", ", ".join(made.calibrators)
    if used := describe_usage(report.usage):
        yield "the trace took", used
    for name, value in report.tags.items():
        yield f"tag {spell_unseen(name)}", spell_unseen(value)

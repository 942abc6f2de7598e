"""The end of the page of a trace: what the trace used, the tools on offer, and how it was scored."""

from __future__ import annotations

from collections.abc import Iterator

from service.core.money import Cost, format_usd
from service.core.report import Report
from service.core.trace import ResourceUsage, Trace
from service.web.trace.marks import escape_invisible

MAX_TOOLS = 200


def describe_usage(usage: ResourceUsage | None) -> str:
    """Describe time, tokens and price in words; empty if nothing is known."""
    if usage is None:
        return ""
    parts = [
        "" if usage.duration_s is None else f"{usage.duration_s:.2f} s",
        "" if usage.input_tokens is None else f"{usage.input_tokens} tokens in",
        "" if usage.output_tokens is None else f"{usage.output_tokens} out",
        "" if usage.cost_usd is None else format_usd(usage.cost_usd),
    ]
    return ", ".join(filter(None, parts))


def list_tools(trace: Trace | None, report: Report) -> tuple[tuple[str, str], ...] | None:
    """List name and description of the tools on offer; None if nobody says."""
    if trace is not None and trace.tools is not None:
        tools = [(tool.name, tool.description) for tool in trace.tools]
    elif report.offered is not None:
        tools = [(name, "") for name in report.offered]
    else:
        return None
    return tuple(
        [(escape_invisible(name[:200]), escape_invisible(description[:600])) for name, description in tools[:MAX_TOOLS]]
    )


def list_provenance(report: Report) -> Iterator[tuple[str, str]]:
    """List what produced the report, by name."""
    provenance = report.provenance
    yield "rubric", f"{report.rubric.id}@{report.rubric.version}, sha256 {report.rubric.hash[:12]}"
    yield "engine", provenance.engine
    yield "judges", provenance.judges + (f", {provenance.judge_model}" if provenance.judge_model else "")
    if provenance.stand_in:
        yield "stand-in", "rules stood in for a model: what was judged means nothing"
    if provenance.tokens_in is not None or provenance.replies:
        yield "replies", f"{provenance.replies}, {provenance.cache_hits} from the cache, {Cost.read(provenance)}"
    if provenance.calibrators != "uncalibrated":
        yield "fits", ", ".join(provenance.calibrators)
    if used := describe_usage(report.usage):
        yield "the trace took", used
    for name, value in report.tags.items():
        yield f"tag {escape_invisible(name)}", escape_invisible(value)

"""A run of scored traces on one page: their outcomes, where they broke, and each trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from service.core.report import Report
from service.core.scores import Verdict
from service.reporting.breaks import describe_break
from service.reporting.statements import list_reasons, read_score
from service.web.trace.build import ScoredTrace, build_trace_view
from service.web.trace.marks import escape_invisible
from service.web.trace.problems import clip_line
from service.web.trace.view import TraceView

MAX_LINKS = 40
"""Most traces of one group that have a link."""
MAX_NAME_CHARS = 200
_RANKS: dict[Verdict, int] = {"fail": 0, "undecided": 1, "warn": 2, "pass": 3, "not_applicable": 4}
"""The order in which traces are chosen to be shown in full."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One trace of the run."""

    anchor: str
    name: str
    verdict: Verdict
    score: float | None
    stage: str
    """The first stage that failed; empty if none did."""
    words: str
    """What is wrong, or open, in a sentence."""
    view: TraceView | None
    """None: the page only lists it."""


@dataclass(frozen=True, slots=True)
class FailureGroupView:
    """Traces that broke in the same way."""

    stage: str
    finding: str
    tool: str
    count: int
    traces: tuple[tuple[str, str], ...]
    """Name and id of the first of them."""


@dataclass(frozen=True, slots=True)
class RunView:
    """The whole page."""

    title: str
    verdicts: tuple[tuple[Verdict, int], ...]
    groups: tuple[FailureGroupView, ...]
    entries: tuple[RunEntry, ...]
    listed_only: int
    """Number of traces that the page only lists."""
    without_trace: int
    """Number of traces shown in full without the trace itself, from the report alone."""


def choose_full(reports: Sequence[Report], limit: int) -> frozenset[int]:
    """Choose the positions of the traces to show in full: failed ones first, then undecided ones."""
    ranked = sorted(range(len(reports)), key=lambda n: _RANKS[reports[n].verdict])
    return frozenset(ranked[:limit])


def build_run_view(title: str, scored: Sequence[ScoredTrace], full: frozenset[int]) -> RunView:
    """Build the page of a run. `full`: the positions of the traces shown in full."""
    entries = tuple([_build_entry(n, one, n in full) for n, one in enumerate(scored)])
    counts = Counter(one.report.verdict for one in scored)
    return RunView(
        title=escape_invisible(title),
        verdicts=tuple([(verdict, counts[verdict]) for verdict in _RANKS if counts[verdict]]),
        groups=_group_failures([one.report for one in scored], entries),
        entries=entries,
        listed_only=sum(entry.view is None for entry in entries),
        without_trace=sum(entry.view is not None and not entry.view.has_trace for entry in entries),
    )


def _build_entry(number: int, scored: ScoredTrace, full: bool) -> RunEntry:  # noqa: FBT001 (of a row)
    report, anchor = scored.report, f"trace-{number + 1}"
    name = scored.name or report.trace_id or f"#{number + 1}"
    view = build_trace_view(scored._replace(name=name), prefix=f"t{number + 1}-") if full else None
    return RunEntry(
        anchor,
        escape_invisible(name[:MAX_NAME_CHARS]),
        report.verdict,
        read_score(report),
        report.first_failing_stage or "",
        next((clip_line(one.words) for one in list_reasons(report)), "") if full else "",
        view,
    )


def _group_failures(reports: Sequence[Report], entries: Sequence[RunEntry]) -> tuple[FailureGroupView, ...]:
    groups: dict[tuple[str, str, str], list[RunEntry]] = {}
    for report, entry in zip(reports, entries, strict=True):
        break_ = describe_break(report)
        if break_.stage:
            groups.setdefault((break_.stage, break_.finding, break_.tool), []).append(entry)
    groups_found = [
        FailureGroupView(
            stage,
            escape_invisible(finding),
            escape_invisible(tool),
            len(members),
            tuple([(one.name, one.anchor) for one in members[:MAX_LINKS]]),
        )
        for (stage, finding, tool), members in groups.items()
    ]
    return tuple(sorted(groups_found, key=lambda one: -one.count))

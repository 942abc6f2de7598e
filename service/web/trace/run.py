"""A run of scored traces on one page: what came of them, where they broke, and each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from service.core.report import Report
from service.core.scores import Verdict
from service.reporting.breaks import describe_break
from service.web.trace.build import ScoredTrace, build_trace_view
from service.web.trace.marks import spell_unseen
from service.web.trace.payloads import COMPLETE
from service.web.trace.view import TraceView

MAX_LINKS = 40
"""Traces of one group that have a link."""
MAX_NAME_CHARS = 200
_FIRST: dict[Verdict, int] = {"fail": 0, "abstain": 1, "warn": 2, "pass": 3, "not_applicable": 4}
"""Which traces are shown whole before others."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One trace of the run."""

    anchor: str
    name: str
    verdict: Verdict
    score: float | None
    stage: str
    """Where it broke first; empty where it did not."""
    words: str
    """What is wrong, or open, in a sentence."""
    view: TraceView | None
    """None: it is told of here alone."""


@dataclass(frozen=True, slots=True)
class FailureGroupView:
    """Traces that broke alike."""

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
    not_whole: int
    """Traces that are told of in the list alone."""
    without_trace: int
    """Those shown whole of which only the report was at hand."""


def choose_whole(reports: Sequence[Report], most: int) -> frozenset[int]:
    """The positions of the traces that are shown whole: those that failed first, then what is open."""
    ranked = sorted(range(len(reports)), key=lambda n: _FIRST[reports[n].verdict])
    return frozenset(ranked[:most])


def build_run_view(title: str, scored: Sequence[ScoredTrace], whole: frozenset[int]) -> RunView:
    """The page of a run. `whole`: the positions of those shown whole."""
    entries = tuple([_build_entry(n, one, n in whole) for n, one in enumerate(scored)])
    counts = Counter(one.report.verdict for one in scored)
    return RunView(
        title=spell_unseen(title),
        verdicts=tuple([(verdict, counts[verdict]) for verdict in _FIRST if counts[verdict]]),
        groups=_group_failures([one.report for one in scored], entries),
        entries=entries,
        not_whole=sum(entry.view is None for entry in entries),
        without_trace=sum(entry.view is not None and not entry.view.has_trace for entry in entries),
    )


def _build_entry(number: int, scored: ScoredTrace, whole: bool) -> RunEntry:  # noqa: FBT001 (of a row)
    report, anchor = scored.report, f"trace-{number + 1}"
    name = scored.name or report.trace_id or f"#{number + 1}"
    view = build_trace_view(scored._replace(name=name), prefix=f"t{number + 1}-", choices=COMPLETE) if whole else None
    return RunEntry(
        anchor,
        spell_unseen(name[:MAX_NAME_CHARS]),
        report.verdict,
        report.score,
        report.first_failing_stage or "",
        _describe(view),
        view,
    )


def _describe(view: TraceView | None) -> str:
    if view is None:
        return ""
    if view.problems:
        return view.problems[0].words
    waits = [one for one in view.open if one.decides]
    return f"waits for {waits[0].criterion}: {waits[0].reason}" if waits else ""


def _group_failures(reports: Sequence[Report], entries: Sequence[RunEntry]) -> tuple[FailureGroupView, ...]:
    groups: dict[tuple[str, str, str], list[RunEntry]] = {}
    for report, entry in zip(reports, entries, strict=True):
        broke = describe_break(report)
        if broke.stage:
            groups.setdefault((broke.stage, broke.finding, broke.tool), []).append(entry)
    found = [
        FailureGroupView(
            stage,
            spell_unseen(finding),
            spell_unseen(tool),
            len(members),
            tuple([(one.name, one.anchor) for one in members[:MAX_LINKS]]),
        )
        for (stage, finding, tool), members in groups.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.count))

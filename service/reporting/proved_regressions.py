"""Regressions that need no statistics: what passed in the first of two runs and fails in the second by what code decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from service.core.judging.judged_outcomes import JudgedScore, MixedScore
from service.core.outcome import Outcome, Scored
from service.reporting.comparison import TRIAL
from service.reporting.statements import render_finding
from service.reporting.summary.samples import CRITERION, Sample, list_outcomes

WHOLE_TRACE = frozenset({"passed", "score"})
"""The gated numbers that all criteria are part of."""


@dataclass(frozen=True, slots=True)
class ProvedRegression:
    """What passed in the first run, and in the second fails by code (`regressed`) or is open (`undecided`)."""

    case: str
    criterion: str
    """Empty for the case as a whole."""
    status: Literal["regressed", "undecided"]
    why: str


def list_proved_regressions(
    pairs: Sequence[tuple[Sample, Sample | None]], names: Sequence[str]
) -> Iterator[ProvedRegression]:
    """List them for the gated numbers `names`; not for repeated trials, nor for pairs that were scored with different rubrics.

    What only a judge fails is left to statistics. What code passed and is now open, or in a case that is missing, might have
    failed: that is undecided.
    """
    for one, other in pairs:
        if TRIAL in one.report.tags or (other is not None and other.report.rubric != one.report.rubric):
            continue
        gated = [c for c in one.report.criteria if not {c.id, c.stage, *WHOLE_TRACE}.isdisjoint(names)]
        passed = {c.id: list_outcomes(c, one.report) for c in gated if one.passes(CRITERION + c.id)}
        by_code = {name for name, outcomes in passed.items() if not any(map(_is_judged, outcomes))}
        case = one.report.trace_id or ""
        if other is None or not other.is_applicable:
            why = "missing in the second run" if other is None else "nothing applies to it in the second run"
            yield from [ProvedRegression(case, "", "undecided", why)] if by_code else []
            continue
        outcomes = {c.id: list_outcomes(c, other.report) for c in other.report.criteria}
        failed = {
            name: [o for o in found if isinstance(o, Scored) and not o.passed] for name, found in outcomes.items()
        }
        proved = {name: [o for o in found if not _is_failed_by_judge(o)] for name, found in failed.items()}
        for name in passed:
            reasons = [found.reason for found in other.report.open if found.criterion == name]
            if proved.get(name):
                why = "".join([f": {render_finding(found)}" for found in proved[name][0].findings[:1]])
                yield ProvedRegression(case, name, "regressed", f"passed before and fails now{why}")
            elif reasons and name in by_code:
                yield ProvedRegression(case, name, "undecided", f"passed before and is open now: {reasons[0]}")
        broke = "passed" in names and one.passed and other.report.verdict == "fail"
        if broke and proved == failed and not any(proved.get(name) for name in passed):
            yield ProvedRegression(case, "", "regressed", "passed before and fails now")


def _is_judged(outcome: Outcome) -> bool:
    return isinstance(outcome, JudgedScore | MixedScore)


def _is_failed_by_judge(outcome: Outcome) -> bool:
    return isinstance(outcome, JudgedScore) or (isinstance(outcome, MixedScore) and outcome.code_passed)

"""Outcomes in words: findings, why something is open, what a judge said and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from service.core.judging.judged_outcomes import (
    JudgeCalibration,
    JudgedScore,
    MixedScore,
    OpenJudgement,
    UnsureJudgement,
)
from service.core.judging.notes import JudgeNote
from service.core.money import Cost
from service.core.outcome import MethodScore, Scored
from service.core.report import ReportOutcome
from service.reporting.statements import OutcomeState, OutcomeStatement, Remark, list_gaps
from service.web.trace.marks import escape_invisible

OutcomeSign = Literal["pass", "fail", "blocked", "open", "skip"]
"""blocked: not checked, because an earlier check failed."""


class JudgeView(NamedTuple):
    """What one judge said, and what it is worth."""

    note: JudgeNote
    calibration: str
    """In a sentence."""
    price: str
    """What it cost and used, in words."""


@dataclass(frozen=True, slots=True)
class OutcomeView:
    """One criterion at one step, turn or expected call, or of the whole trace."""

    criterion: str
    stage: str
    sign: OutcomeSign
    where: str
    """What it is about, if not a step: `turn 2`, `the whole trace`; empty for a step."""
    value: float | None
    words: tuple[Remark, ...]
    """What was found, or why nothing was."""
    notes: tuple[Remark, ...] = ()
    """What is worth knowing if it passed."""
    judges: tuple[JudgeView, ...] = ()


_CALIBRATION_WORDS = {
    "calibrated": "calibrated",
    "stale": "its calibration is too old, or was made with another snapshot of the model",
    "mismatched": "it is calibrated only for another version of the judge or another model",
    "out_of_domain": "its calibration does not cover such a value or such traces",
    "uncalibrated": "uncalibrated: it was never compared with human labels",
}


def build_outcome(one: OutcomeStatement, where: str = "", *, already_said: Container[str] = ()) -> OutcomeView:
    """Describe an outcome in words. `already_said`: codes of findings that the page shows elsewhere."""
    words = tuple(
        dict.fromkeys([each._replace(words=escape_invisible(each.words)) for each in _list_words(one, already_said)])
    )
    outcome, passed = one.outcome, one.state == "passed"
    return OutcomeView(
        one.criterion,
        one.stage,
        SIGNS[one.state],
        where,
        outcome.value if isinstance(outcome, Scored) else None,
        () if passed else words,
        words if passed else (),
        tuple(_list_judges(outcome)),
    )


SIGNS: dict[OutcomeState, OutcomeSign] = {
    "failed": "fail",
    "blocked": "blocked",
    "open": "open",
    "unchecked": "skip",
    "passed": "pass",
    "absent": "skip",
}


def _list_words(one: OutcomeStatement, already_said: Container[str]) -> Iterator[Remark]:
    outcome = one.outcome
    yield from one.list_remarks(said=already_said)
    if gap := one.explain_gap():
        yield Remark(gap)
    if isinstance(outcome, MethodScore):
        yield Remark(f"{outcome.raw:g} by the published method")
        yield from (Remark(_describe_row(row.name, row.match, row.score, row.weight)) for row in outcome.rows)


def _describe_row(name: str, match: bool | None, score: float, weight: float) -> str:  # noqa: FBT001 (of a row)
    result = {True: "matches", False: "does not match", None: "was not compared"}[match]
    return f"{name} {result}: {score:g} of weight {weight:g}"


def _list_judges(outcome: ReportOutcome) -> Iterator[JudgeView]:
    if isinstance(outcome, JudgedScore | OpenJudgement):
        estimate = outcome.value if isinstance(outcome, JudgedScore) else outcome.estimate
        calibration = _describe_calibration(outcome.calibration, outcome.raw, estimate)
        yield JudgeView(outcome.judge, calibration, _describe_price(outcome.judge))
    elif isinstance(outcome, UnsureJudgement):
        yield JudgeView(outcome.judge, "it cannot tell, so nothing is decided", _describe_price(outcome.judge))
    elif isinstance(outcome, MixedScore):
        for note, status in zip(outcome.judges, outcome.calibrations, strict=False):
            yield JudgeView(note, _CALIBRATION_WORDS[status], _describe_price(note))


def _describe_price(note: JudgeNote) -> str:
    parts = [
        {"hit": "from the cache", "miss": "asked now", "coalesced": "asked once, with another question"}[note.cache]
    ]
    parts.append(str(Cost.of(note.cost_usd)))
    if note.tokens_in is not None and note.tokens_out is not None:
        cached = f" ({note.tokens_cached} cached)" if note.tokens_cached else ""
        parts.append(f"{note.tokens_in} tokens in{cached}, {note.tokens_out} out")
    if note.latency_ms is not None:
        parts.append(f"{note.latency_ms / 1000:.1f} s")
    return ", ".join(parts)


def _describe_calibration(calibration: JudgeCalibration, raw: float, estimate: float | None) -> str:
    if calibration.status != "calibrated":
        return f"{_CALIBRATION_WORDS[calibration.status]}; its own value is {raw:.2f}"
    parts = ["calibrated" + (f" by {calibration.fit}" if calibration.fit else "")]
    if estimate is not None:
        parts.append(f"a human would pass it with probability {estimate:.2f}")
    if calibration.threshold is not None:
        parts.append(f"{calibration.threshold:.2f} passes")
    if calibration.needs_human:
        parts.append("so close to it that a human has to decide")
    if calibration.guarantee is not None:
        parts.append(f"such verdicts agree with humans in at least {calibration.guarantee.share:.0%} of cases")
    return "; ".join(parts)


def split_outcomes(
    statements: Sequence[OutcomeStatement], already_said: Container[str]
) -> tuple[tuple[OutcomeView, ...], tuple[str, ...]]:
    """Split the outcomes of a step, in the order of telling: those with something to say, and the others in words."""
    loud: list[OutcomeView] = []
    names: dict[OutcomeState, list[str]] = {}
    gaps: list[tuple[str, str]] = []
    for one in statements:
        view = build_outcome(one, already_said=already_said)
        if view.sign in ("fail", "blocked", "open") or view.judges or view.notes:
            loud.append(view)
        elif one.state == "unchecked":
            gaps.append((one.criterion, one.explain_gap()))
        else:
            names.setdefault(one.state, []).append(one.criterion)
    others = [f"passed here: {', '.join(names['passed'])}"] if "passed" in names else []
    others += list_gaps(gaps)
    others += [f"nothing to check: {', '.join(names['absent'])}"] if "absent" in names else []
    return tuple(loud), tuple(map(escape_invisible, others))

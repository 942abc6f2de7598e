"""Outcomes in words: findings, why something is open, what a judge said and how far it can be trusted."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from service.core.judging.judged_outcomes import (
    EarlierJudgement,
    JudgeCalibration,
    JudgedScore,
    MixedScore,
    UnsureJudgement,
)
from service.core.judging.notes import JudgeNote
from service.core.judging.withholding import WithheldJudgement
from service.core.money import Cost
from service.core.outcome import Errored, MethodScore, PartlyOpenScore, Scored, Skipped
from service.core.report import ReportOutcome
from service.reporting.findings import render_finding
from service.web.trace.marks import escape_invisible

OutcomeSign = Literal["pass", "fail", "open", "skip"]


@dataclass(frozen=True, slots=True)
class JudgeView:
    """What one judge said, and what it is worth."""

    id: str
    model: str
    label: str
    reason: str
    quotes: tuple[str, ...]
    calibration: str
    """In a sentence."""
    price: str
    """What it cost and used, in words."""
    votes: tuple[tuple[str, str, str], ...] = ()
    """Model, label and value of each vote, if there were several."""
    spread: float | None = None
    earlier: bool = False
    """Whether another judge was asked after it."""


@dataclass(frozen=True, slots=True)
class OutcomeView:
    """One criterion at one step, turn or expected call, or of the whole trace."""

    criterion: str
    stage: str
    sign: OutcomeSign
    where: str
    """What it is about, if not a step: `turn 2`, `the whole trace`; empty for a step."""
    value: float | None
    words: tuple[str, ...]
    """What was found, or why nothing was."""
    notes: tuple[str, ...] = ()
    """What is worth knowing if it passed."""
    judges: tuple[JudgeView, ...] = ()


_CALIBRATION_WORDS = {
    "calibrated": "calibrated",
    "stale": "its calibration is too old, or was made with another snapshot of the model",
    "mismatched": "it is calibrated only for another version of the judge or another model",
    "out_of_domain": "its calibration does not cover such a value or such traces",
    "uncalibrated": "uncalibrated: it was never compared with human labels",
}


def build_outcome(
    criterion: str, stage: str, outcome: ReportOutcome, where: str = "", *, already_said: Container[str] = ()
) -> OutcomeView:
    """Describe an outcome in words. `already_said`: codes of findings that the page shows elsewhere."""
    words = tuple(dict.fromkeys(map(escape_invisible, _list_words(outcome, already_said))))
    passed = isinstance(outcome, Scored) and outcome.passed
    return OutcomeView(
        criterion,
        stage,
        find_sign(outcome),
        where,
        outcome.value if isinstance(outcome, Scored) else None,
        () if passed else words,
        words if passed else (),
        tuple(_list_judges(outcome)),
    )


def find_sign(outcome: ReportOutcome) -> OutcomeSign:
    """Return whether it passed, failed, is open, or says nothing."""
    if isinstance(outcome, Scored):
        return "pass" if outcome.passed else "fail"
    if isinstance(outcome, Errored):
        return "open"
    if outcome.cause == "blocked":
        return "fail"
    return "open" if outcome.open else "skip"


def _list_words(outcome: ReportOutcome, already_said: Container[str]) -> Iterator[str]:
    if isinstance(outcome, Errored):
        yield f"could not be checked ({outcome.cause}): {outcome.reason}"
        return
    yield from [render_finding(finding) for finding in outcome.findings if finding.code not in already_said]
    if isinstance(outcome, Skipped):
        yield f"counts as 0: {outcome.reason}" if outcome.cause == "blocked" else outcome.reason
    if isinstance(outcome, PartlyOpenScore):
        yield from (f"open in part ({part.cause}): {part.reason}" for part in outcome.open_parts)
    if isinstance(outcome, MethodScore):
        yield f"{outcome.raw:g} by the published method"
        yield from (_describe_row(row.name, row.match, row.score, row.weight) for row in outcome.rows)


def _describe_row(name: str, match: bool | None, score: float, weight: float) -> str:  # noqa: FBT001 (of a row)
    result = {True: "matches", False: "does not match", None: "was not looked at"}[match]
    return f"{name} {result}: {score:g} of weight {weight:g}"


def _list_judges(outcome: ReportOutcome) -> Iterator[JudgeView]:
    if isinstance(outcome, JudgedScore | WithheldJudgement):
        yield from (_build_earlier(one) for one in outcome.earlier)
        estimate = outcome.value if isinstance(outcome, JudgedScore) else outcome.estimate
        yield _build_judge(outcome.judge, _describe_calibration(outcome.calibration, outcome.raw, estimate))
    elif isinstance(outcome, UnsureJudgement):
        yield _build_judge(outcome.judge, "it cannot tell, so nothing is decided")
    elif isinstance(outcome, MixedScore):
        for note, status in zip(outcome.judges, outcome.calibrations, strict=False):
            yield _build_judge(note, _CALIBRATION_WORDS[status])


def _build_earlier(one: EarlierJudgement) -> JudgeView:
    return _build_judge(one.judge, _describe_calibration(one.calibration, one.raw, one.value), earlier=True)


def _build_judge(note: JudgeNote, calibration: str, *, earlier: bool = False) -> JudgeView:
    votes = tuple([(vote.model, vote.label, "-" if vote.value is None else f"{vote.value:.2f}") for vote in note.votes])
    return JudgeView(
        id=note.id,
        model=note.model,
        label=escape_invisible(note.label),
        reason=escape_invisible(note.reason),
        quotes=tuple(map(escape_invisible, note.quotes)),
        calibration=calibration,
        price=", ".join(_list_prices(note)),
        votes=votes,
        spread=note.spread,
        earlier=earlier,
    )


def _list_prices(note: JudgeNote) -> Iterator[str]:
    yield {"hit": "from the cache", "miss": "asked now", "coalesced": "asked once, with another question"}[note.cache]
    yield str(Cost.of(note.cost_usd))
    if note.tokens_in is not None and note.tokens_out is not None:
        yield f"{note.tokens_in} tokens in, {note.tokens_out} out"
    if note.latency_ms is not None:
        yield f"{note.latency_ms / 1000:.1f} s"


def _describe_calibration(calibration: JudgeCalibration, raw: float, estimate: float | None) -> str:
    if calibration.status != "calibrated":
        return f"{_CALIBRATION_WORDS[calibration.status]}; its own value is {raw:.2f}"
    parts = ["calibrated" + (f" by {calibration.fit}" if calibration.fit else "")]
    if estimate is not None:
        interval = f" [{calibration.interval[0]:.2f}, {calibration.interval[1]:.2f}]" if calibration.interval else ""
        parts.append(f"a human would pass it with probability {estimate:.2f}{interval}")
    if calibration.threshold is not None:
        parts.append(f"{calibration.threshold:.2f} passes")
    if calibration.ask_a_human:
        parts.append("so close to it that a human has to decide")
    if calibration.guarantee is not None:
        parts.append(f"such verdicts agree with humans in at least {calibration.guarantee.share:.0%} of cases")
    return "; ".join(parts)


def split_outcomes(outcomes: Iterable[OutcomeView]) -> tuple[tuple[OutcomeView, ...], tuple[str, ...], tuple[str, ...]]:
    """Split into outcomes with something to say, names of those that passed silently, and names that do not apply."""
    loud: list[OutcomeView] = []
    passed: list[str] = []
    silent: list[str] = []
    for one in outcomes:
        if one.sign in ("fail", "open") or one.judges or one.notes:
            loud.append(one)
        elif one.sign == "pass":
            passed.append(one.criterion)
        else:
            silent.append(one.criterion)
    return tuple(sort_outcomes(loud)), tuple(passed), tuple(silent)


def sort_outcomes(outcomes: Iterable[OutcomeView]) -> Sequence[OutcomeView]:
    """Sort failures first, then what is open, else in the order of the contract."""
    return sorted(outcomes, key=lambda one: _ORDER[one.sign])


_ORDER: dict[OutcomeSign, int] = {"fail": 0, "open": 1, "pass": 2, "skip": 3}

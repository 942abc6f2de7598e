"""Replies become outcomes: votes are combined, and what each cost is kept beside the value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Literal, NamedTuple

from pydantic import JsonValue

from service.core.judging.fits import VERSION, Binding, Fit, Status, calibrate_value
from service.core.judging.focus import list_texts
from service.core.judging.judges import Ask, Judge
from service.core.judging.prompts import Usage
from service.core.judging.questions import ASSEMBLY
from service.core.judging.replies import Judgement
from service.core.outcome import (
    Bounds,
    Errored,
    Finding,
    Outcome,
    PartlyOpenScore,
    Pointer,
    Scored,
    Skipped,
    build_open_part,
)
from service.core.partial import PartialOutcome
from service.core.trace import Trace

CacheUse = Literal["hit", "miss", "coalesced"]
"""hit: from the cache. miss: the model was asked. coalesced: it was asked at the same moment by another, and once."""

NOISE = 1e-9


class PendingOutcome(NamedTuple):
    """An outcome that code has begun, and the questions whose replies complete it."""

    partial: PartialOutcome
    parts: tuple[Ask | Skipped, ...]
    """For each part that is open its question, or why there is none."""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The questions."""
        return tuple([part for part in self.parts if isinstance(part, Ask)])


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """One judgement with where it came from."""

    judgement: Judgement
    requested: str
    """The model that was asked for."""
    model: str
    """The model as the provider names it."""
    cache: CacheUse
    usage: Usage
    """The tokens it took when it was made, and what was paid for it now: 0.0 for a hit."""
    latency_ms: float | None = None
    cut: tuple[str, ...] = ()
    """The parts of which something was left out."""
    instead_of: str | None = None
    """The model in whose place it was asked, which could not be reached."""


Vote = JudgeReply | Errored | Skipped
"""What became of one request: a reply, a fault, or that it was not made."""


@dataclass(frozen=True, slots=True)
class JudgeCalibration:
    """Whether the value is a measured probability that a human would pass the item.

    calibrated: it is, by the fit named. stale: that fit is too old, or was made with another snapshot of the model.
    mismatched: there are only fits of another version of the judge or another model. out_of_domain: the raw value, or the
    stratum that the request names, is none that was fitted. uncalibrated: there is no fit that may be used. All but the
    first leave the judge's own value as it is.
    """

    status: Status
    fit: str | None = None
    interval: tuple[float, float] | None = None
    """What the probability may as well be, where the method says so."""
    threshold: float | None = None
    """The least value that passes, chosen with the fit; None where the judge's own holds."""
    ask_a_human: bool = False
    """Whether the value lies where the fit says that it should not decide."""


@dataclass(frozen=True, slots=True)
class JudgeVote:
    """One of several answers."""

    model: str
    label: str
    value: float
    cache: CacheUse


@dataclass(frozen=True, slots=True)
class JudgeNote:
    """Who judged, what it said and what that took. Unknown is None, never 0."""

    id: str
    model: str
    label: str
    reason: str
    quotes: tuple[str, ...]
    cache: CacheUse
    """Of several votes: miss where any model was asked, else coalesced where any was, else hit."""
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    """What was paid for it by this request."""
    latency_ms: float | None
    """The longest of its votes, in milliseconds."""
    votes: tuple[JudgeVote, ...] = ()
    """Each vote, where there was more than one."""
    spread: float | None = None
    """The highest minus the lowest value of the votes."""


@dataclass(frozen=True, slots=True)
class JudgedScore(Scored):
    """A judge's verdict. `raw` is the judge's own value in [0, 1]; `value` is what calibration makes of it."""

    raw: float = field(kw_only=True)
    calibration: JudgeCalibration = field(kw_only=True)
    judge: JudgeNote = field(kw_only=True)
    evidence: JsonValue = field(default=None, kw_only=True)
    """What code had found before, as the judge was shown it."""

    @property
    def decision(self) -> float:
        """1 where it passed, 0 where not: how sure the judge is moves the score, never the verdict."""
        return float(self.passed)


def judge_ask(
    ask: Ask, votes: Sequence[Vote], at: Pointer, fits: Collection[Fit] = (), *, stratum: str | None = None
) -> Outcome:
    """The outcome of a question. `at` is the place it is about.

    A vote that is missing is open: there is a judgement only where no vote in its place could turn the decision.

    `fits`: where one was made for this very judge and these models, the value is what it makes of the judge's own, and its
    threshold decides. `stratum`: that of the trace, where it is known.
    """
    replies = [vote for vote in votes if isinstance(vote, JudgeReply)]
    missing = [vote for vote in votes if not isinstance(vote, JudgeReply)]
    if not replies or (missing and not _is_sure(ask, replies, len(missing), fits)):
        return _explain_missing(missing)
    raw, label = _combine_votes(ask.judge, [(r.judgement.label, r.judgement.value) for r in replies])
    found = calibrate_value(fits, _build_binding(ask.judge, replies), ask.criterion, raw, stratum=stratum)
    value = found.value if ask.veto is None else min(found.value, ask.veto)
    passed = value >= (ask.judge.threshold if found.threshold is None else found.threshold) - NOISE
    spokesman = next(reply for reply in replies if reply.judgement.label == label)
    return JudgedScore(
        value=value,
        passed=passed,
        findings=(
            *ask.findings,
            *_build_verdict_findings(ask.judge, spokesman.judgement, at, passed=passed),
            *_build_remarks(replies, at),
        ),
        raw=raw,
        calibration=JudgeCalibration(found.status, found.fit, found.interval, found.threshold, found.abstain),
        judge=_build_note(ask.judge, replies, spokesman),
        evidence=ask.evidence,
    )


def _is_sure(ask: Ask, replies: Sequence[JudgeReply], missing: int, fits: Iterable[Fit]) -> bool:
    """Whether the judge decides the same whatever the missing votes were.

    Where the judge has been fitted it is not: a fit is bound to all who vote, and nobody knows who did not.
    """
    judge = ask.judge
    if any(fit.judge == judge.id and fit.criterion == ask.criterion for fit in fits):
        return False
    values = [raw if ask.veto is None else min(raw, ask.veto) for raw in _list_possible(judge, replies, missing)]
    return len({value >= judge.threshold - NOISE for value in values}) == 1


def _list_possible(judge: Judge, replies: Sequence[JudgeReply], missing: int) -> Iterator[float]:
    """What the votes may come to: the ends of it, for each label that may win."""
    given = [(reply.judgement.label, reply.judgement.value) for reply in replies]
    ends = {label.value for label in judge.scale.values()}
    for name, label in judge.scale.items():
        for value in {min(ends), max(ends)} if judge.logprobs or judge.combine == "mean" else {label.value}:
            raw, winner = _combine_votes(judge, [*given, *[(name, value)] * missing])
            if winner == name or judge.combine == "mean":
                yield raw


def _build_binding(judge: Judge, replies: Sequence[JudgeReply]) -> Binding:
    """The very judge that spoke; of a jury, all of its models."""
    models = dict.fromkeys(reply.model for reply in replies)
    return Binding(judge.id, judge.digest, "+".join(models), ASSEMBLY)


@dataclass(frozen=True, slots=True)
class MixedScore(PartlyOpenScore):
    """What code and judges decided together: `judges` are those that spoke."""

    judges: tuple[JudgeNote, ...] = field(kw_only=True)
    calibrations: tuple[Status, ...] = field(kw_only=True)
    """Whether what each of them said is calibrated."""
    decided: float = field(kw_only=True)
    """The value with 1 for each part that a judge passed and 0 for each that it did not."""

    @property
    def decision(self) -> float:
        """What counts for a verdict."""
        return self.decided


def complete_outcome(awaiting: PendingOutcome, answers: Sequence[Outcome]) -> Outcome:
    """The outcome with what judges say of its open parts.

    A part that nobody decided leaves the whole open within bounds, and a failure standing.
    """
    partial = awaiting.partial
    if partial.banned is not None:
        answers = [_invert_ban(answer, partial.banned) for answer in answers]
    if len(answers) == 1 and not (partial.weight or partial.findings):
        return answers[0]
    parts = list(zip([part.weight for part in partial.open], answers, strict=True))
    scored = [(weight, one) for weight, one in parts if isinstance(one, Scored)]
    unknown = [(weight, one) for weight, one in parts if not isinstance(one, Scored)]
    passed = partial.passed and all(one.passed for _, one in scored)
    known = fsum([partial.weight, *[weight for weight, _ in scored]])
    gained = fsum([partial.gained, *[weight * one.value for weight, one in scored]])
    decided = fsum([partial.gained, *[weight * one.decision for weight, one in scored]])
    findings = (*partial.findings, *[finding for _, one in scored for finding in one.findings])
    bounds = _compute_bounds(known, gained, decided, fsum([weight for weight, _ in unknown])) if unknown else None
    if unknown and passed:
        return _leave_open(unknown[0][1], bounds, findings)
    spoke = [one for _, one in scored if isinstance(one, JudgedScore)]
    return MixedScore(
        _compute_ratio(gained, known),
        passed,
        findings,
        judges=tuple([one.judge for one in spoke]),
        calibrations=tuple([one.calibration.status for one in spoke]),
        decided=_compute_ratio(decided, known),
        bounds=bounds,
        open_parts=tuple([build_open_part(one) for _, one in unknown]),
    )


def _compute_bounds(known: float, gained: float, decided: float, left: float) -> Bounds:
    whole = known + left
    return Bounds(
        _compute_ratio(gained, whole),
        _compute_ratio(gained + left, whole),
        _compute_ratio(decided, whole),
        _compute_ratio(decided + left, whole),
    )


def _compute_ratio(part: float, whole: float) -> float:
    return min(1.0, part / whole) if whole else 1.0


def _leave_open(outcome: Skipped | Errored, bounds: Bounds | None, findings: tuple[Finding, ...]) -> Outcome:
    """The whole, open for the reason that its first open part is."""
    if isinstance(outcome, Errored):
        return replace(outcome, bounds=bounds)
    return replace(outcome, findings=(*findings, *outcome.findings), bounds=bounds)


def _invert_ban(answer: Outcome, banned: Finding) -> Outcome:
    """The outcome of a ban: what fits its words is wrong."""
    if not isinstance(answer, Scored):
        return answer
    if answer.passed:
        return replace(answer, value=0.0, passed=False, findings=(banned, *answer.findings))
    return replace(answer, value=1.0, passed=True, findings=())


def find_place(ask: Ask, trace: Trace) -> Pointer:
    """The place in the trace that a question is about."""
    if ask.place:
        return ask.place
    if ask.step is not None:
        return f"/steps/{ask.step}/call"
    said = list_texts(trace, ask.turn)
    return said[-1][0] if said else "/messages"


def _explain_missing(votes: Sequence[Errored | Skipped]) -> Outcome:
    """Why votes are missing: a fault before anything else."""
    faults = [vote for vote in votes if isinstance(vote, Errored)]
    return next(iter([*faults, *votes]), Skipped("not_asked", "no judge has answered this"))


def _combine_votes(judge: Judge, votes: Sequence[tuple[str, float]]) -> tuple[float, str]:
    """The value of some labels with their values, and the label that is told: the most frequent, of several the lowest."""
    scale = judge.scale
    counts = Counter(label for label, _ in votes)
    label = min(counts, key=lambda name: (-counts[name], scale[name].value, name))
    given = [value for name, value in votes if judge.combine == "mean" or name == label]
    return min(1.0, fsum(given) / len(given)), label


def _build_verdict_findings(judge: Judge, said: Judgement, at: Pointer, *, passed: bool) -> Iterable[Finding]:
    """Why it did not pass: each claim that falls short, else the verdict as a whole."""
    short = [claim for claim in said.claims if judge.scale[claim.label].value < judge.threshold]
    for claim in short:
        yield Finding(claim.label, f'"{claim.quote}": {claim.reason}', claim.path or at)
    if not passed and not short:
        yield Finding(said.label, said.reason or said.label, at)


def _build_remarks(replies: Sequence[JudgeReply], at: Pointer) -> Iterable[Finding]:
    """What a reader should know of how the answer came about."""
    for name in sorted({name for reply in replies for name in reply.cut}):
        yield Finding("shown_in_part", f"{name} was too long for the judge and shown without its middle", at)
    yield from dict.fromkeys([remark for reply in replies if (remark := _remark_on_model(reply, at))])


def _remark_on_model(reply: JudgeReply, at: Pointer) -> Finding | None:
    answered = f"{reply.model or 'a model that gives no name'} answered"
    if reply.instead_of is not None:
        return Finding("fallback_model", f"{reply.instead_of} could not be reached; {answered}", at)
    if is_same_model(reply.requested, reply.model):
        return None
    return Finding("other_model", f"{reply.requested} was asked, {answered}", at)


def is_same_model(requested: str, resolved: str) -> bool:
    """Whether the model that answered is the one asked for, or a dated version of it.

    >>> is_same_model("openai/gpt-5-mini", "gpt-5-mini-2026-08-07"), is_same_model("ollama/qwen3:8b", "qwen3:8b")
    (True, True)
    >>> is_same_model("openai/gpt-5", "gpt-5-mini"), is_same_model("openai/judge", "other")
    (False, False)
    >>> is_same_model("openai/gpt-4", "gpt-4-32k"), is_same_model("x/llama-3", "llama-3-70b")
    (False, False)
    """
    want, got = requested.rpartition("/")[2].casefold(), resolved.rpartition("/")[2].casefold()
    return got == want or (got.startswith(want) and VERSION.fullmatch(got, len(want)) is not None)


def _build_note(judge: Judge, replies: Sequence[JudgeReply], spokesman: JudgeReply) -> JudgeNote:
    uses = {reply.cache for reply in replies}
    values = [reply.judgement.value for reply in replies]
    several = len(replies) > 1
    return JudgeNote(
        id=judge.id,
        model=spokesman.model,
        label=spokesman.judgement.label,
        reason=spokesman.judgement.reason,
        quotes=spokesman.judgement.quotes,
        cache="miss" if "miss" in uses else "coalesced" if "coalesced" in uses else "hit",
        tokens_in=sum_counts([reply.usage.tokens_in for reply in replies]),
        tokens_out=sum_counts([reply.usage.tokens_out for reply in replies]),
        cost_usd=sum_costs([reply.usage.cost_usd for reply in replies]),
        latency_ms=max([reply.latency_ms for reply in replies if reply.latency_ms is not None], default=None),
        votes=tuple([_build_vote(reply) for reply in replies]) if several else (),
        spread=max(values) - min(values) if several else None,
    )


def _build_vote(reply: JudgeReply) -> JudgeVote:
    return JudgeVote(reply.model, reply.judgement.label, reply.judgement.value, reply.cache)


def sum_counts(counts: Iterable[int | None]) -> int | None:
    """The sum; None where one is unknown."""
    known = list(counts)
    return None if None in known else sum([count for count in known if count is not None])


def sum_costs(costs: Iterable[float | None]) -> float | None:
    """The sum; None where one is unknown."""
    known = list(costs)
    return None if None in known else fsum([one for one in known if one is not None])

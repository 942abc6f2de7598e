"""Several votes as one value: what they come to as they are, and between which ends where some of them are open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import fsum
from typing import NamedTuple

from service.core.judging.fits import Binding
from service.core.judging.judges import Ask, Judge
from service.core.judging.notes import JudgeReply, is_same_model
from service.core.judging.questions import ASSEMBLY
from service.core.judging.replies import Judgement

TOLERANCE = 1e-9


def combine_values(judge: Judge, votes: Sequence[tuple[str, float]]) -> tuple[float, str]:
    """The value of some labels with their values, and the label that is told: the most frequent, of several the lowest."""
    scale = judge.scale
    counts = Counter(label for label, _ in votes)
    label = min(counts, key=lambda name: (-counts[name], scale[name].value, name))
    given = [value for name, value in votes if judge.combine == "mean" or name == label]
    return min(1.0, fsum(given) / len(given)), label


def passes(value: float, threshold: float) -> bool:
    """Whether a value passes, but for the noise of arithmetic."""
    return value >= threshold - TOLERANCE


def list_counted(judge: Judge, told: Sequence[JudgeReply]) -> Sequence[JudgeReply]:
    """The replies that count of some that tell something: for a majority those that leave nothing open, where there are any.

    What one leaves open has made its value the worst there is, beside a label that it gave to the rest.
    """
    whole = [reply for reply in told if reply.judgement.best is None]
    return whole if judge.combine == "majority" and whole else told


def is_split(judge: Judge, replies: Sequence[JudgeReply]) -> bool:
    """Whether these votes do not agree in what passes, or one of them leaves that open."""
    ends = [end.value for reply in replies for end in (reply.judgement.low, reply.judgement.high)]
    return len({passes(value, judge.threshold) for value in ends}) > 1


def is_decided(judge: Judge, replies: Sequence[JudgeReply], missing: int, veto: float | None) -> bool:
    """Whether the judge, which no fit is for, decides the same whatever the missing votes were and what is open in others."""
    values = [raw if veto is None else min(raw, veto) for raw in _list_possible(judge, replies, missing)]
    return len({passes(value, judge.threshold) for value in values}) == 1


def _list_possible(judge: Judge, replies: Sequence[JudgeReply], missing: int) -> Iterator[float]:
    """What the votes may come to: the ends of it, and of a majority those for each label that may win."""
    if judge.combine == "mean":
        least, most = judge.ends
        for end, rest in (("low", least), ("high", most)):
            given = [getattr(reply.judgement, end).value for reply in replies] + [rest] * missing
            yield min(1.0, fsum(given) / len(given))
        return
    known = [reply for reply in replies if reply.has_verdict and reply.judgement.best is None]
    given = [(reply.judgement.label, reply.judgement.value) for reply in known]
    missing += len(replies) - len(known)
    for name, label in judge.scale.items():
        for value in set(judge.ends) if judge.logprobs or judge.claims == "mean" else {label.value}:
            raw, winner = combine_values(judge, [*given, *[(name, value)] * missing])
            if winner == name:
                yield raw


def build_binding(ask: Ask, replies: Sequence[JudgeReply]) -> Binding:
    """The very judge that spoke, with the evidence it is shown; of a jury, all of its models.

    A fallback that answered some of the votes is named so, for there is no fit of such a mixture. So is a member that
    answered where another was asked: a fit of it alone is none of the jury.
    """
    mixed = len({reply.instead_of for reply in replies}) > 1
    asked = {reply.requested for reply in replies}
    stand_ins = [(mixed and bool(one.instead_of)) or _is_swapped(one, asked) for one in replies]
    models = "+".join(
        f"{one.model} standing in" if other else one.model for one, other in zip(replies, stand_ins, strict=True)
    )
    return Binding(ask.judge.id, ask.judge.digest, models, ASSEMBLY, ask.evidence_digest, replies[0].route)


def _is_swapped(reply: JudgeReply, asked: Collection[str]) -> bool:
    """Whether the model that answered is another one of those that were asked."""
    if len(asked) == 1 or is_same_model(reply.requested, reply.model):
        return False
    return any(is_same_model(one, reply.model) for one in asked)


class Grades(NamedTuple):
    """Graded values in [0, 1]: of all votes, and of each model."""

    raw: float
    members: Mapping[str, float]


def grade_votes(replies: Sequence[JudgeReply], take: Callable[[Judgement], float]) -> Grades:
    """The mean graded value of some replies, one at least, and that of each model; `take` says which of a reply's ends."""
    found: dict[str, list[float]] = {}
    for reply in replies:
        found.setdefault(reply.model, []).append(take(reply.judgement))
    every = [take(reply.judgement) for reply in replies]
    return Grades(_mean(every), {model: _mean(grades) for model, grades in found.items()})


def take_worst(said: Judgement) -> float:
    """The graded value with what is open at its worst."""
    return said.low.graded


def take_best(said: Judgement) -> float:
    """The graded value with what is open at its best."""
    return said.high.graded


def take_middle(said: Judgement) -> float:
    """The graded value half way between the two."""
    return (said.low.graded + said.high.graded) / 2


def _mean(values: Sequence[float]) -> float:
    return min(1.0, fsum(values) / len(values))

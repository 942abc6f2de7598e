"""Combine several votes into one value, or into bounds where some votes are missing or open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from service.core.judging.fits.fit import Binding
from service.core.judging.grades import mean
from service.core.judging.judges import Ask, Judge
from service.core.judging.notes import JudgeReply, is_same_model
from service.core.judging.questions import ASSEMBLY
from service.core.judging.replies import Judgement

TOLERANCE = 1e-9


def combine_values(judge: Judge, votes: Sequence[tuple[str, float]]) -> tuple[float, str]:
    """Return the combined value of some votes, and the label to report: the most frequent; on a tie, the lowest."""
    scale = judge.scale
    counts = Counter(label for label, _ in votes)
    label = min(counts, key=lambda name: (-counts[name], scale[name].value, name))
    given = [value for name, value in votes if judge.combine == "mean" or name == label]
    return mean(given), label


def passes(value: float, threshold: float) -> bool:
    """Whether a value reaches the threshold, give or take rounding noise (`TOLERANCE`)."""
    return value >= threshold - TOLERANCE


def list_counted(judge: Judge, replies: Sequence[JudgeReply]) -> Sequence[JudgeReply]:
    """Return the replies that count: for a majority, those that leave nothing open, if there are any; else all of them.

    An open reply carries the worst possible value beside the label that it gave to the rest, so it would skew a majority.
    """
    whole = [reply for reply in replies if reply.judgement.best is None]
    return whole if judge.combine == "majority" and whole else replies


def is_split(judge: Judge, replies: Sequence[JudgeReply]) -> bool:
    """Whether these votes disagree on pass or fail, or one of them leaves it open."""
    ends = [end.value for reply in replies for end in (reply.judgement.low, reply.judgement.high)]
    return len({passes(value, judge.threshold) for value in ends}) > 1


def is_decided(judge: Judge, replies: Sequence[JudgeReply], missing: int, veto: float | None) -> bool:
    """Whether a judge without a fit reaches the same verdict whatever the missing votes and the open parts of others say."""
    values = [raw if veto is None else min(raw, veto) for raw in _list_possible(judge, replies, missing)]
    return len({passes(value, judge.threshold) for value in values}) == 1


def _list_possible(judge: Judge, replies: Sequence[JudgeReply], missing: int) -> Iterator[float]:
    """Yield the values that the votes may come to: for a mean its two ends, for a majority those of each label that may win."""
    if judge.combine == "mean":
        least, most = judge.ends
        for end, rest in (("low", least), ("high", most)):
            given = [getattr(reply.judgement, end).value for reply in replies] + [rest] * missing
            yield mean(given)
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
    """Return the exact judge that answered: its file, its models (all of them for a jury), its evidence and its route.

    A member of a jury that answered in another member's place is marked "standing in": a fit of that member alone is no fit
    of the jury.
    """
    asked = {reply.requested for reply in replies}
    names: list[str] = []
    for one in replies:
        is_other = len(asked) > 1 and not is_same_model(one.requested, one.model)
        swapped = is_other and any(is_same_model(name, one.model) for name in asked)
        names.append(f"{one.model} standing in" if swapped else one.model)
    models = "+".join(names)
    return Binding(ask.judge.id, ask.judge.digest, models, ASSEMBLY, ask.evidence_digest, replies[0].route)


def grade_votes(replies: Sequence[JudgeReply], take: Callable[[Judgement], float]) -> tuple[float, dict[str, float]]:
    """Return the mean graded value in [0, 1] of at least one reply, overall and per model. `take` picks what counts."""
    by_model: dict[str, list[float]] = {}
    for reply in replies:
        by_model.setdefault(reply.model, []).append(take(reply.judgement))
    every = [grade for grades in by_model.values() for grade in grades]
    return mean(every), {model: mean(grades) for model, grades in by_model.items()}

"""What a judge in Python is given of a question, and what its answers are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import NamedTuple

from pydantic import JsonValue

from service.core.judging.grades import CANNOT_TELL, shade_value
from service.core.judging.judges import Judge
from service.core.judging.questions import Question
from service.core.judging.quoting import iter_shown_results, list_sentences
from service.core.judging.replies import JudgedClaim, Judgement, judge_claims, judge_whole


class Evidence(NamedTuple):
    """What a tool returned."""

    pointer: str
    """JSON pointer into the trace, such as `/steps/0/result/content`."""
    value: JsonValue


@dataclass(frozen=True, slots=True)
class Answer:
    """What a judge says of one claim, or of all."""

    label: str
    """One of the labels of its criterion, or `cannot_tell`."""
    probability: float | None = None
    """How probable the label is, in [0, 1]; None: unknown. Fits take it as input; the label alone decides without a fit."""
    reason: str = ""
    pointer: str | None = None
    """JSON pointer to the value that proves or refutes the claim."""


class BadAnswerError(ValueError):
    """An answer that cannot be used. The message says what was expected."""


def list_claims(question: Question) -> list[str]:
    """List what is to be judged: the sentences of the judged text, or all that is shown, as one line of JSON."""
    if question.judge.claims == "none":
        return ["\n".join([f"{part.name}: {part.text}" for part in question.parts])]
    return list_sentences(question.judged_texts)


def list_evidence(question: Question) -> list[Evidence]:
    """List what the tools returned, as far as the question shows it."""
    shown = {part.name: part.value for part in question.parts}
    return [Evidence(str(event["path"]), event["content"]) for event in iter_shown_results(shown)]


def judge_answers(question: Question, answers: Sequence[Answer]) -> Judgement:
    """Build the judgement from one answer for each claim, or from one for all. BadAnswerError if they do not fit."""
    judge, claims = question.judge, list_claims(question)
    for answer in answers:
        _check(answer, question)
    if len(answers) not in (1, len(claims)):
        raise BadAnswerError(f"returned {len(answers)} answers for {len(claims)} claims; expected one for each, or one")
    if judge.claims == "none":
        [answer] = answers
        judgement = judge_whole(answer.label, answer.reason, (), judge)
        return judgement if answer.probability is None else replace(judgement, graded=_weigh(answer, judge))
    quotes = claims if len(answers) == len(claims) else question.judged_texts
    each = [*answers] if len(answers) == len(quotes) else [*answers] * len(quotes)
    judged = [JudgedClaim(quote, one.label, one.reason, one.pointer) for quote, one in zip(quotes, each, strict=True)]
    return judge_claims(judged, question, [_weigh(one, judge) for one in each])


def _check(answer: Answer, question: Question) -> None:
    menu = question.judge.menu
    if answer.label not in menu:
        raise BadAnswerError(f"the label is {answer.label!r}; expected one of {', '.join(menu)}")
    shown = [one.pointer for one in list_evidence(question)]
    if answer.pointer is not None and not any(f"{answer.pointer}/".startswith(f"{one}/") for one in shown):
        raise BadAnswerError(f"the pointer {answer.pointer!r} leads to nothing in the evidence")
    chance = answer.probability
    if chance is not None and not (isfinite(chance) and 0.0 <= chance <= 1.0):
        raise BadAnswerError(f"the probability is {chance}; expected a number from 0 to 1")


def _weigh(answer: Answer, judge: Judge) -> float | None:
    """Return the mean worth over a label and its opposite, the end of the scale on the other side of the threshold."""
    if answer.probability is None or answer.label == CANNOT_TELL:
        return None
    value, (worst, best) = judge.scale[answer.label].value, judge.ends
    opposite = worst if value >= judge.threshold else best
    mine, other = (shade_value(judge.claims, one) for one in (value, opposite))
    return answer.probability * mine + (1.0 - answer.probability) * other

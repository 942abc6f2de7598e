"""Step 4 of the contract, where the expectation names the text: does the model say it?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.budget import COST_OF_A_MATCHER, text_chars
from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, Part, Seen, Subject
from service.core.critics import Critic, Match, Uncompared, Unjudged
from service.core.hollow import is_hollow
from service.core.outcome import Finding, Outcome, Scored, Skipped, failed
from service.core.partial import Open, Partial
from service.core.shapes import Template, cost_of, matcher_of


class AnswerGate(Check):
    """The final text (of the trace, or of a turn) against `answer`, a text or a matcher. Finding: `wrong_answer`."""

    kind: Literal["answer"] = "answer"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"text"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"answer"})

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for each answer that is expected."""
        asked = [(turn, scope.answer) for _, scope, turn in case.scopes if scope.answer is not None]
        seen = [
            (Subject(turn=turn), _best(case, wanted, _answers(case, turn), "wrong_answer", turn))
            for turn, wanted in asked
        ]
        return seen or [(WHOLE, Skipped("not_applicable", "no answer was expected"))]


class SaidGate(Check):
    """The assistant's texts against `said`: the one that matches best counts. Finding: `not_said`."""

    kind: Literal["said"] = "said"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"text"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"said"})

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for each text that is expected."""
        asked = [(turn, text) for _, scope, turn in case.scopes for text in _each(scope.said)]
        seen = [
            (Subject(turn=turn), _best(case, wanted, _texts(case, turn), "not_said", turn)) for turn, wanted in asked
        ]
        return seen or [(WHOLE, Skipped("not_applicable", "no text was expected"))]


def _each(said: Template | None) -> Sequence[Template]:
    if said is None:
        return ()
    return said if isinstance(said, list) else [said]  # pyright: ignore[reportReturnType]


Spoken = tuple[str, str]
"""The pointer of a text and the text."""


def _texts(case: Case, turn: int | None) -> list[Spoken]:
    return [
        (f"/messages/{n}/text", message.text)
        for n, message in case.messages_of(turn)
        if message.role == "assistant" and message.text
    ]


def _answers(case: Case, turn: int | None) -> list[Spoken]:
    if turn is None:
        return [] if case.trace.answer is None else [("/answer", case.trace.answer)]
    return _texts(case, turn)[-1:]


def _silence(case: Case, turn: int | None) -> Outcome:
    """What having no text means: the trace stops at a call, or the model had its say and said nothing."""
    absent = case.absent(turn)
    if absent is not None:
        return absent
    messages, steps = case.messages_of(turn), case.steps_of(turn)
    spoke = case.once("spoke", lambda: [int(path.split("/")[2]) for path, _ in _texts(case, None)])
    ends_in_call = bool(steps) and all(n < steps[-1].message for n in spoke if turn is None or n >= steps[0].message)
    if not messages or ends_in_call:
        return Skipped("not_captured", "the trace stops before the model says anything more")
    return failed(0.0, Finding("no_answer", "the model said nothing", "/messages"))


def _best(case: Case, wanted: Template, texts: Sequence[Spoken], code: str, turn: int | None) -> Outcome | Partial:
    """The outcome of the text that fits best. Words are held against all texts together: one of them must fit."""
    if not texts:
        return _silence(case, turn)
    _spend(case, wanted, texts)
    matcher = matcher_of(wanted)
    compared = [(path, matcher.match(text)) for path, text in texts]
    matches = [(path, match) for path, match in compared if isinstance(match, Match)]
    unknown = [(path, match) for path, match in compared if isinstance(match, Uncompared)]
    if not matches:
        return _open(texts, *unknown[-1])
    path, best = max(matches, key=lambda found: (found[1].passed, found[1].value))
    return Scored(best.value, best.passed, () if best.passed else (Finding(code, best.note, path),))


def _spend(case: Case, wanted: Template, texts: Sequence[Spoken]) -> None:
    """Counts the comparisons that are to be made."""
    if isinstance(wanted, str):
        case.meter.spend("comparisons", 2 * len(texts))
        return
    case.meter.spend("comparisons", COST_OF_A_MATCHER * cost_of(wanted) * len(texts))
    asked = wanted.model_dump(mode="json") if isinstance(wanted, Critic) else wanted
    chars = text_chars([asked]) * len(texts) + sum([len(text) for _, text in texts])
    case.meter.spend("characters", cost_of(wanted) * chars)


def _open(texts: Sequence[Spoken], path: str, match: Uncompared) -> Outcome | Partial:
    if not isinstance(match, Unjudged):
        return Skipped(match.cause, match.reason)
    full: list[JsonValue] = [text for _, text in texts if not is_hollow(text)]
    if not full:
        return failed(0.0, Finding("hollow_answer", f"{texts[-1][1].strip()!r} says nothing", texts[-1][0]))
    value: JsonValue = match.value if len(texts) == 1 else full
    return Partial((Open(match.words, value, path),))

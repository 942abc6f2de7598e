"""Step 4 of the contract, where the expectation names the text: does the model say it?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, Part, Subject, SubjectOutcome
from service.core.critics import Critic, Match, OpenComparison, WordsComparison
from service.core.expectations.templates import Template, find_cost, match_template
from service.core.hollow_answers import is_hollow
from service.core.outcome import Finding, OpenValue, Outcome, PartialOutcome, Scored, Skipped, build_failure
from service.core.work_limits import COST_OF_A_MATCHER, count_text_chars

NO_ANSWER_EXPECTED = Skipped("not_applicable", "no answer was expected")


class AnswerGate(Check):
    """The final text (of the trace, or of a turn) against `answer`, a text or a matcher; what was given back against `output`.

    Findings: `wrong_answer`, `wrong_output`.
    """

    kind: Literal["answer"] = "answer"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"text"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"answer", "output"})
    nothing: ClassVar[Skipped | None] = NO_ANSWER_EXPECTED

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """One outcome for each answer that is expected."""
        asked = [(turn, scope.answer) for _, scope, turn in case.scopes if scope.answer is not None]
        seen = [
            (Subject(turn=turn), _pick_best(case, wanted, _list_answers(case, turn), "wrong_answer", turn))
            for turn, wanted in asked
        ]
        output = compare_output(case)
        seen += [] if output is None else [(WHOLE, output)]
        return seen or [(WHOLE, NO_ANSWER_EXPECTED)]


NO_TEXT_EXPECTED = Skipped("not_applicable", "no text was expected")


class SaidGate(Check):
    """The assistant's texts against `said`: the one that matches best counts. Finding: `not_said`."""

    kind: Literal["said"] = "said"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"text"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"said"})
    nothing: ClassVar[Skipped | None] = NO_TEXT_EXPECTED

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """One outcome for each text that is expected."""
        asked = [(turn, text) for _, scope, turn in case.scopes for text in _list_texts_said(scope.said)]
        seen = [
            (Subject(turn=turn), _pick_best(case, wanted, _list_texts(case, turn), "not_said", turn))
            for turn, wanted in asked
        ]
        return seen or [(WHOLE, NO_TEXT_EXPECTED)]


def compare_output(case: Case) -> Outcome | PartialOutcome | None:
    """What was given back against what was expected; None where nothing was."""
    if case.expectation is None or not case.expectation.says_output:
        return None
    given = case.output
    if given is None:
        return judge_silence(case, None)
    return compare_with(case, case.expectation.output, given.value, given.path)


def compare_with(case: Case, wanted: Template, value: JsonValue, path: str) -> Outcome | PartialOutcome:
    """A value that was given back, at its pointer, against the one that was wanted."""
    cost = find_cost(wanted)
    asked = wanted.model_dump(mode="json") if isinstance(wanted, Critic) else wanted
    case.meter.spend("comparisons", COST_OF_A_MATCHER * cost)
    case.meter.spend("characters", cost * count_text_chars([asked, value]))
    match = match_template(wanted, value)
    if not isinstance(match, Match):
        return _leave_value_open(match, path)
    return Scored(match.value, match.passed, () if match.passed else (Finding("wrong_output", match.note, path),))


def _leave_value_open(match: OpenComparison, path: str) -> Outcome | PartialOutcome:
    if isinstance(match, WordsComparison):
        return PartialOutcome((OpenValue(match.words, match.value, path),))
    return Skipped(match.cause, match.reason)


def _list_texts_said(said: Template | None) -> Sequence[Template]:
    if said is None:
        return ()
    return said if isinstance(said, list) else [said]  # pyright: ignore[reportReturnType]


Spoken = tuple[str, str]
"""The pointer of a text and the text."""


def _list_texts(case: Case, turn: int | None) -> list[Spoken]:
    return [
        (f"/messages/{n}/text", message.text)
        for n, message in case.find_messages(turn)
        if message.role == "assistant" and message.text
    ]


def _list_answers(case: Case, turn: int | None) -> list[Spoken]:
    if turn is None:
        return [] if case.trace.answer is None else [("/answer", case.trace.answer)]
    return _list_texts(case, turn)[-1:]


def judge_silence(case: Case, turn: int | None) -> Outcome:
    """What having no text means: the trace stops at a call, or the model had its say and said nothing."""
    absent = case.explain_absence(turn)
    if absent is not None:
        return absent
    messages, steps = case.find_messages(turn), case.find_steps(turn)
    spoke = case.once("spoke", lambda: [int(path.split("/")[2]) for path, _ in _list_texts(case, None)])
    ends_in_call = bool(steps) and all(n < steps[-1].message for n in spoke if turn is None or n >= steps[0].message)
    if not messages or ends_in_call:
        return Skipped("not_captured", "the trace stops before the model says anything more")
    return build_failure(0.0, Finding("no_answer", "the model said nothing", "/messages"))


def _pick_best(
    case: Case, wanted: Template, texts: Sequence[Spoken], code: str, turn: int | None
) -> Outcome | PartialOutcome:
    """The outcome of the text that fits best. Words are held against all texts together: one of them must fit."""
    if not texts:
        return judge_silence(case, turn)
    _spend(case, wanted, texts)
    compared = [(path, match_template(wanted, text)) for path, text in texts]
    matches = [(path, match) for path, match in compared if isinstance(match, Match)]
    unknown = [(path, match) for path, match in compared if isinstance(match, OpenComparison)]
    if not matches:
        return _leave_open(texts, *unknown[-1])
    path, best = max(matches, key=lambda found: (found[1].passed, found[1].value))
    return Scored(best.value, best.passed, () if best.passed else (Finding(code, best.note, path),))


def _spend(case: Case, wanted: Template, texts: Sequence[Spoken]) -> None:
    """Counts the comparisons that are to be made."""
    if isinstance(wanted, str):
        case.meter.spend("comparisons", 2 * len(texts))
        return
    case.meter.spend("comparisons", COST_OF_A_MATCHER * find_cost(wanted) * len(texts))
    asked = wanted.model_dump(mode="json") if isinstance(wanted, Critic) else wanted
    chars = count_text_chars([asked]) * len(texts) + sum([len(text) for _, text in texts])
    case.meter.spend("characters", find_cost(wanted) * chars)


def _leave_open(texts: Sequence[Spoken], path: str, match: OpenComparison) -> Outcome | PartialOutcome:
    if not isinstance(match, WordsComparison):
        return _leave_value_open(match, path)
    full: list[JsonValue] = [text for _, text in texts if not is_hollow(text)]
    if not full:
        return build_failure(0.0, Finding("hollow_answer", f"{texts[-1][1].strip()!r} says nothing", texts[-1][0]))
    value: JsonValue = match.value if len(texts) == 1 else full
    return PartialOutcome((OpenValue(match.words, value, path),))

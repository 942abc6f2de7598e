"""Step 4 of the contract, where the expectation names a text: does the model say it?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, Part, Subject, SubjectOutcome
from service.core.critics import Critic, Match, OpenComparison, WordsComparison
from service.core.expectations.templates import Template, find_cost, match_template
from service.core.outcome import Finding, OpenValue, Outcome, PartialOutcome, Scored, Skipped, build_failure
from service.core.trace import is_hollow
from service.core.work_limits import COST_OF_A_MATCHER, count_text_chars

NO_ANSWER_EXPECTED = Skipped("not_applicable", "no answer was expected")


class AnswerGate(Check):
    """Compare the final text (of the trace, or of a turn) with `answer`, a text or a matcher, and the run's output with `output`.

    Findings: `wrong_answer`, `wrong_output`.
    """

    kind: Literal["answer"] = "answer"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"text"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"answer", "output"})
    idle_outcome: ClassVar[Skipped | None] = NO_ANSWER_EXPECTED

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each expected answer, and one for an expected output."""
        outcomes: list[SubjectOutcome] = []
        for _, scope, turn in case.scopes:
            if scope.answer is not None:
                whole = [] if case.trace.answer is None else [("/answer", case.trace.answer)]
                texts = whole if turn is None else _list_texts(case, turn)[-1:]
                outcomes.append((Subject(turn=turn), _score_best(case, scope.answer, texts, "wrong_answer", turn)))
        output = compare_output(case)
        outcomes += [] if output is None else [(WHOLE, output)]
        return outcomes or [(WHOLE, NO_ANSWER_EXPECTED)]


NO_TEXT_EXPECTED = Skipped("not_applicable", "no text was expected")


class SaidGate(Check):
    """Compare the assistant's texts with `said`: the text that matches best counts. Finding: `not_said`."""

    kind: Literal["said"] = "said"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"text"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"said"})
    idle_outcome: ClassVar[Skipped | None] = NO_TEXT_EXPECTED

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each expected text."""
        outcomes = [
            (Subject(turn=turn), _score_best(case, expected, _list_texts(case, turn), "not_said", turn))
            for _, scope, turn in case.scopes
            if scope.said is not None
            for expected in (scope.said if isinstance(scope.said, list) else [scope.said])
        ]
        return outcomes or [(WHOLE, NO_TEXT_EXPECTED)]


def compare_output(case: Case) -> Outcome | PartialOutcome | None:
    """Compare the run's output with the expected one; None where no output is expected."""
    if case.expectation is None or not case.expectation.says_output:
        return None
    output = case.output
    if output is None:
        return score_silence(case, None)
    return compare_with(case, case.expectation.output, output.value, output.path)


def compare_with(case: Case, expected: Template, value: JsonValue, path: str) -> Outcome | PartialOutcome:
    """Compare an output value, found at the pointer `path`, with the expected one."""
    cost = find_cost(expected)
    plain = expected.model_dump(mode="json") if isinstance(expected, Critic) else expected
    case.meter.spend("comparisons", COST_OF_A_MATCHER * cost)
    case.meter.spend("characters", cost * count_text_chars([plain, value]))
    match = match_template(expected, value)
    if not isinstance(match, Match):
        return _leave_value_open(match, path)
    return Scored(match.value, match.passed, () if match.passed else (Finding("wrong_output", match.note, path),))


def _leave_value_open(match: OpenComparison, path: str) -> Outcome | PartialOutcome:
    if isinstance(match, WordsComparison):
        return PartialOutcome((OpenValue(match.words, match.value, path),))
    return Skipped(match.cause, match.reason)


PlacedText = tuple[str, str]
"""A text's pointer and the text."""


def _list_texts(case: Case, turn: int | None) -> list[PlacedText]:
    return [
        (f"/messages/{n}/text", message.text)
        for n, message in case.find_messages(turn)
        if message.role == "assistant" and message.text
    ]


def score_silence(case: Case, turn: int | None) -> Outcome:
    """Score a turn without a text: not captured where the trace stops at a call, a failure where the model said nothing."""
    absent = case.explain_missing_turn(turn)
    if absent is not None:
        return absent
    messages, steps = case.find_messages(turn), case.find_steps(turn)
    spoke = case.once("spoke", lambda: [int(path.split("/")[2]) for path, _ in _list_texts(case, None)])
    ends_in_call = bool(steps) and all(n < steps[-1].message for n in spoke if turn is None or n >= steps[0].message)
    if not messages or ends_in_call:
        return Skipped("not_captured", "the trace stops before the model says anything more")
    return build_failure(0.0, Finding("no_answer", "the model said nothing", "/messages"))


def _score_best(
    case: Case, expected: Template, texts: Sequence[PlacedText], code: str, turn: int | None
) -> Outcome | PartialOutcome:
    """Score the text that fits best. An expectation in words goes to the judge with all texts: one of them must fit."""
    if not texts:
        return score_silence(case, turn)
    _spend(case, expected, texts)
    comparisons = [(path, match_template(expected, text)) for path, text in texts]
    matches = [(path, match) for path, match in comparisons if isinstance(match, Match)]
    open_ones = [(path, match) for path, match in comparisons if isinstance(match, OpenComparison)]
    path, best = max(matches, key=lambda placed: (placed[1].passed, placed[1].value), default=("", None))
    if best is None or (open_ones and not best.passed):
        return _leave_open(texts, *open_ones[-1])
    return Scored(best.value, best.passed, () if best.passed else (Finding(code, best.note, path),))


def _spend(case: Case, expected: Template, texts: Sequence[PlacedText]) -> None:
    if isinstance(expected, str):
        case.meter.spend("comparisons", 2 * len(texts))
        return
    case.meter.spend("comparisons", COST_OF_A_MATCHER * find_cost(expected) * len(texts))
    plain = expected.model_dump(mode="json") if isinstance(expected, Critic) else expected
    chars = count_text_chars([plain]) * len(texts) + sum([len(text) for _, text in texts])
    case.meter.spend("characters", find_cost(expected) * chars)


def _leave_open(texts: Sequence[PlacedText], path: str, match: OpenComparison) -> Outcome | PartialOutcome:
    if not isinstance(match, WordsComparison):
        return _leave_value_open(match, path)
    substantial: list[JsonValue] = [text for _, text in texts if not is_hollow(text)]
    if not substantial:
        return build_failure(0.0, Finding("hollow_answer", f"{texts[-1][1].strip()!r} says nothing", texts[-1][0]))
    value: JsonValue = match.value if len(texts) == 1 else substantial
    return PartialOutcome((OpenValue(match.words, value, path),))

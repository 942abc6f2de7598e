"""Score a run's output by UiPath's evaluators: exact match, JSON similarity, contains.

`service.core.methods.uipath_output_number` computes UiPath's own numbers.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, Part, SubjectOutcome
from service.core.critics import Contains, Critic
from service.core.expectations.templates import Template, has_matcher
from service.core.gates.answer import compare_with, score_silence
from service.core.gates.compat import build_method_score, read_plain
from service.core.json.values import equals, format_value
from service.core.methods.uipath_output_number import (
    ALL,
    ATTACHMENT,
    OutputPathError,
    fold_leaves,
    list_leaves,
    read_actual,
    read_expected,
    score_contains,
    score_exact_match,
    score_json_similarity,
)
from service.core.models.kinds import Several
from service.core.outcome import PERFECT, Errored, Finding, Outcome, PartialOutcome, Scored, Skipped, build_failure
from service.core.work_limits import count_text_chars
from service.errors import InputError

OutputPath = Annotated[str, Field(max_length=1_000)]

MAX_LEAVES_NAMED = 20
"""At most this many wrong leaves are named."""

AS_TEXT = (
    "there whole numbers read with .0 and lose digits beyond 15, true is 1, a text makes texts of both sides, "
    "and what raises counts 0"
)


class _OutputGate(Check):
    has_own_number: ClassVar[bool] = True
    looks_at: ClassVar[frozenset[Part]] = frozenset({"text"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"output"})
    target_output_key: OutputPath | Several[OutputPath] = ALL
    """The part that is compared: `*` for all of it, a path such as `a.b[0]`, or several paths."""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        if case.expectation is None or not case.expectation.says_output:
            return [(WHOLE, Skipped("not_applicable", "no output was expected"))]
        if case.output is None:
            return [(WHOLE, score_silence(case, None))]
        template = case.expectation.output
        case.meter.spend("characters", 10 * count_text_chars([case.output.value, _dump(template)]))
        score = self._score_upstream if case.matching.compat else self._score
        return [(WHOLE, score(case, case.output.value, template))]

    def _score_upstream(self, case: Case, output: JsonValue, template: Template) -> Outcome:
        expected = self._read_plain(template)
        try:
            actual = read_actual(output, self.target_output_key)
            if any(isinstance(one, str) and ATTACHMENT.fullmatch(one) for one in _list_parts(actual)):
                return Errored("undefined_upstream", "UiPath compares with the file that this attachment names")
            raw = self._compute_upstream(actual, expected)
        except OutputPathError:
            raw = 0.0
        return build_method_score(self, case, raw, system="UiPath", why=AS_TEXT)

    def _read_plain(self, template: Template) -> JsonValue:
        return read_plain("/expected/output", template, "UiPath")

    def _read_expected(self, output: JsonValue) -> JsonValue:
        try:
            return read_expected(output, self.target_output_key)
        except OutputPathError as error:
            raise InputError.at("/expected/output", str(error)) from None

    def _score(self, case: Case, output: JsonValue, template: Template) -> Outcome | PartialOutcome:
        try:
            actual = read_actual(output, self.target_output_key)
        except OutputPathError as error:
            return build_failure(0.0, Finding("missing_output", str(error), _get_path(case)))
        return self._compare(case, actual, template)

    @abstractmethod
    def _compute_upstream(self, actual: JsonValue, expected: JsonValue) -> float: ...

    @abstractmethod
    def _compare(self, case: Case, actual: JsonValue, template: Template) -> Outcome | PartialOutcome: ...


class UipathExactMatchGate(_OutputGate):
    """Compare the run's output with the expected `output`: 1.0 if they are equal, else 0.0.

    Values are typed: 1 is 1.0, true is not 1, and a text is not a number. Texts are compared ignoring case unless
    `case_sensitive`; texts inside objects and arrays are always compared with case, as upstream. A part that the output lacks
    fails, `negated` or not. With `compat` in the rubric, the score is UiPath's own number. Findings: `wrong_output`,
    `missing_output`. Source: UiPath's exact match evaluator.
    """

    kind: Literal["uipath_exact_match"] = "uipath_exact_match"
    case_sensitive: bool = False
    negated: bool = False
    """Whether the output must differ from the expected one."""

    def _compute_upstream(self, actual: JsonValue, expected: JsonValue) -> float:
        expected = read_expected(expected, self.target_output_key)
        return _negate(score_exact_match(actual, expected, case_sensitive=self.case_sensitive), self.negated)

    def _compare(self, case: Case, actual: JsonValue, template: Template) -> Outcome | PartialOutcome:
        if isinstance(template, Critic) or has_matcher(template):
            return _invert(case, compare_with(case, template, actual, _get_path(case)), negated=self.negated)
        expected = self._read_expected(template)  # pyright: ignore[reportArgumentType] (no matcher is inside)
        if isinstance(actual, str) and isinstance(expected, str) and not self.case_sensitive:
            same = actual.lower() == expected.lower()
        else:
            same = equals(actual, expected)
        return _decide(case, same != self.negated, f"expected {format_value(expected)}, got {format_value(actual)}")


class UipathJsonSimilarityGate(_OutputGate):
    """Score how similar the run's output is to the expected `output`: the mean over the expected leaves, in [0, 1].

    Numbers are compared by their distance as a share of the expected number, texts by edit distance, all else by equality; a
    value of another type scores 0 for every leaf it should have had. Arrays are compared by position; extra members and items
    are free. An expected output without leaves expects nothing: 1.0, with the finding `vacuous`. Only 1.0 passes: set a
    threshold in the rubric. With `compat` in the rubric, the score is UiPath's own number. Findings: `wrong_output`,
    `missing_output`. Source: UiPath's JSON similarity evaluator.
    """

    kind: Literal["uipath_json_similarity"] = "uipath_json_similarity"

    def _compute_upstream(self, actual: JsonValue, expected: JsonValue) -> float:
        return score_json_similarity(actual, read_expected(expected, self.target_output_key))

    def _compare(self, case: Case, actual: JsonValue, template: Template) -> Outcome | PartialOutcome:
        leaves = list_leaves(actual, self._read_expected(self._read_plain(template)))
        if not leaves:
            return PERFECT.add_findings(Finding("vacuous", "the expected output has no leaf to compare", "/expected"))
        wrong = [leaf for leaf in leaves if leaf.value < 1.0]
        findings = [
            Finding(
                "wrong_output", f"{leaf.path or 'value'}: similarity {leaf.value:.3f}", self._locate(case, leaf.path)
            )
            for leaf in wrong[:MAX_LEAVES_NAMED]
        ]
        return build_failure(fold_leaves(leaves), *findings) if wrong else PERFECT

    def _locate(self, case: Case, path: str) -> str:
        """Return the pointer of a leaf, as far as it is known."""
        base = _get_path(case)
        return base + path if self.target_output_key == ALL and base == "/output" else base


class UipathContainsGate(_OutputGate):
    """Look for the text of `output` in the run's output: 1.0 if it is there, else 0.0.

    `output` is a text or a `contains` matcher. A run's output that is not a text is searched as JSON, with numbers as they are
    written. With `compat` in the rubric, the score is UiPath's own number. Findings: `wrong_output`, `missing_output`. Source:
    UiPath's contains evaluator.
    """

    kind: Literal["uipath_contains"] = "uipath_contains"
    case_sensitive: bool = False
    negated: bool = False
    """Whether the text must not be there."""

    def _read_plain(self, template: Template) -> JsonValue:
        search = template.value if isinstance(template, Contains) else super()._read_plain(template)
        if not isinstance(search, str):
            raise InputError.at("/expected/output", "what should be in the output is a text, or contains one")
        return search

    def _compute_upstream(self, actual: JsonValue, expected: JsonValue) -> float:
        value = score_contains(actual, str(expected), case_sensitive=self.case_sensitive)
        return _negate(value, self.negated)

    def _compare(self, case: Case, actual: JsonValue, template: Template) -> Outcome | PartialOutcome:
        search = str(self._read_plain(template))
        text = actual if isinstance(actual, str) else json.dumps(actual, ensure_ascii=False)
        found = search in text if self.case_sensitive else search.lower() in text.lower()
        verb = "is not" if not found else "is"
        return _decide(case, found != self.negated, f"{format_value(search)} {verb} in {format_value(actual)}")


def _decide(case: Case, passed: bool, message: str) -> Outcome:  # noqa: FBT001
    return PERFECT if passed else build_failure(0.0, Finding("wrong_output", message, _get_path(case)))


def _get_path(case: Case) -> str:
    return case.output.path if case.output else "/output"


def _negate(value: float, negated: bool) -> float:  # noqa: FBT001
    return 1.0 - value if negated else value


def _invert(case: Case, outcome: Outcome | PartialOutcome, *, negated: bool) -> Outcome | PartialOutcome:
    """Invert the outcome of a matcher if `negated`: what matches is wrong."""
    if not negated or isinstance(outcome, Skipped | Errored):
        return outcome
    if isinstance(outcome, Scored):
        return _decide(case, not outcome.passed, "it matches what it must not match")
    return Skipped("not_asked", "no judge is asked whether an output is not what words describe")


def _list_parts(actual: JsonValue) -> Sequence[JsonValue]:
    return [actual, *actual.values()] if isinstance(actual, dict) else [actual]


def _dump(template: Template) -> object:
    return template.model_dump(mode="json") if isinstance(template, Critic) else template

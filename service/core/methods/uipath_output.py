"""Score a run's output by UiPath's evaluators: exact match, JSON similarity, contains.

Source: UiPath/uipath-python, `packages/uipath/src/uipath/eval/evaluators`. With `compat`, the same comparisons run by its rules:
every whole number is first made a float, so that 42 reads "42.0" and long ones lose digits; a text on one side makes texts of
both; values are compared as Python does, where true is 1; and what raises there counts 0.0.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from math import fsum
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Field, JsonValue
from rapidfuzz.distance import Levenshtein

from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Part, SubjectOutcome
from service.core.critics import Contains, Critic
from service.core.expectations.templates import Template, has_matcher
from service.core.gates import published
from service.core.gates.answer import compare_with, score_silence
from service.core.json.pointers import escape_token
from service.core.json.values import equals, format_value
from service.core.models.kinds import Several
from service.core.outcome import PERFECT, Errored, Finding, Outcome, PartialOutcome, Skipped, build_failure
from service.core.work_limits import count_text_chars
from service.errors import InputError

OutputPath = Annotated[str, Field(max_length=1_000)]

MAX_LEAVES_NAMED = 20
"""At most this many wrong leaves are named."""
NEXT_TO_ZERO = 1e-12
ALL, PATH = "*", "/expected/output"
ATTACHMENT = re.compile(r"urn:uipath:cas:file:orchestrator:[a-f0-9-]+\n?", re.IGNORECASE)
"""A text that UiPath replaces by the content of the file it names."""


Leaf = tuple[str, float, int]
"""An expected leaf: its pointer, its similarity, and how many leaves it stands for."""


class OutputPathError(ValueError):
    """The output has nothing at this path."""


class _OutputGate(published.PublishedCheck):
    system: ClassVar[str] = "UiPath"
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
        output, template = case.output, case.expectation.output
        plain = template.model_dump(mode="json") if isinstance(template, Critic) else template
        case.meter.spend("characters", 10 * count_text_chars([output.value, plain]))
        if case.matching.compat:
            return self._compute_theirs(case, output.value, self.read_plain(PATH, template))
        try:
            actual = read_part(output.value, self.target_output_key)
        except OutputPathError as error:
            return [(WHOLE, build_failure(0.0, Finding("missing_output", str(error), output.path)))]
        return [(WHOLE, self._score(case, actual, template, output.path))]

    def _compute_theirs(self, case: Case, output: JsonValue, expected: JsonValue) -> Iterable[SubjectOutcome]:
        try:
            actual = read_part(output, self.target_output_key)
            parts = [actual, *(actual.values() if isinstance(actual, dict) else ())]
            if any(isinstance(one, str) and ATTACHMENT.fullmatch(one) for one in parts):
                reason = "UiPath compares with the file that this attachment names"
                return [(WHOLE, Errored("undefined_upstream", reason))]
            sides = [published.make_floats(one) for one in (actual, self._find_expected(expected))]
            raw = self._compute(*sides, theirs=True)
        except (OutputPathError, InputError):
            raw = 0.0
        why = (
            "there whole numbers read with .0 and lose digits beyond 15, true is 1, a text makes texts of both sides, "
            "and what raises counts 0"
        )
        return self.give_own_number(case, raw, why)

    def _find_expected(self, expected: JsonValue) -> JsonValue:
        """Return the compared part of the expected output, which may be the JSON text of an object."""
        try:
            if self.target_output_key != ALL and isinstance(expected, str):
                expected = json.loads(expected)
            return read_part(expected, self.target_output_key)
        except OutputPathError as error:
            raise InputError.at(PATH, str(error)) from None
        except (ValueError, RecursionError):
            raise InputError.at(PATH, "the expected output is text, and no JSON with such a key") from None

    def _score(self, case: Case, actual: JsonValue, template: Template, path: str) -> Outcome | PartialOutcome:  # noqa: ARG002
        expected = self._find_expected(self.read_plain(PATH, template))
        passed = self._compute(actual, expected, theirs=False) == 1.0
        return PERFECT if passed else _fail(self._explain(format_value(actual), format_value(expected)), path)

    def _explain(self, actual: str, expected: str) -> str:
        return f"expected {expected}, got {actual}"

    @abstractmethod
    def _compute(self, actual: JsonValue, expected: JsonValue, *, theirs: bool) -> float:
        """Compute the number, by UiPath's rules (then all numbers are floats) or by ours."""


def _fail(message: str, path: str) -> Outcome:
    return build_failure(0.0, Finding("wrong_output", message, path))


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

    def _compute(self, actual: JsonValue, expected: JsonValue, *, theirs: bool) -> float:
        if theirs and (isinstance(actual, str) or isinstance(expected, str)):
            actual, expected = str(actual), str(expected)
        if isinstance(actual, str) and isinstance(expected, str) and not self.case_sensitive:
            actual, expected = actual.lower(), expected.lower()
        return float((actual == expected if theirs else equals(actual, expected)) != self.negated)

    def _score(self, case: Case, actual: JsonValue, template: Template, path: str) -> Outcome | PartialOutcome:
        if not has_matcher(template):
            return super()._score(case, actual, template, path)
        outcome = compare_with(case, template, actual, path)
        if not self.negated or isinstance(outcome, Skipped | Errored):
            return outcome
        if isinstance(outcome, PartialOutcome):
            return Skipped("not_asked", "no judge is asked whether an output is not what words describe")
        return _fail("it matches what it must not match", path) if outcome.passed else PERFECT


class UipathJsonSimilarityGate(_OutputGate):
    """Score how similar the run's output is to the expected `output`: the mean over the expected leaves, in [0, 1].

    Numbers are compared by their distance as a share of the expected number, texts by edit distance, all else by equality; a
    value of another type scores 0 for every leaf it should have had. Arrays are compared by position; extra members and items
    are free. An expected output without leaves expects nothing: 1.0, with the finding `vacuous`. Only 1.0 passes: set a
    threshold in the rubric. With `compat` in the rubric, the score is UiPath's own number. Findings: `wrong_output`,
    `missing_output`. Source: UiPath's JSON similarity evaluator.
    """

    kind: Literal["uipath_json_similarity"] = "uipath_json_similarity"

    def _compute(self, actual: JsonValue, expected: JsonValue, *, theirs: bool) -> float:  # noqa: ARG002
        return _average([*_compare_leaves(actual, expected)])

    def _score(self, case: Case, actual: JsonValue, template: Template, path: str) -> Outcome:  # noqa: ARG002
        leaves = [*_compare_leaves(actual, self._find_expected(self.read_plain(PATH, template)))]
        if not leaves:
            return PERFECT.add_findings(Finding("vacuous", "the expected output has no leaf to compare", "/expected"))
        known = self.target_output_key == ALL and path == "/output"  # else the pointer of a leaf is not
        findings = [
            Finding("wrong_output", f"{at or 'value'}: similarity {value:.3f}", path + at if known else path)
            for at, value, _ in leaves
            if value < 1.0
        ]
        return build_failure(_average(leaves), *findings[:MAX_LEAVES_NAMED]) if findings else PERFECT


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

    def read_plain(self, path: str, value: Template) -> JsonValue:
        """Return the text to look for."""
        search = value.value if isinstance(value, Contains) else super().read_plain(path, value)
        if not isinstance(search, str):
            raise InputError.at(path, "what should be in the output is a text, or contains one")
        return search

    def _find_expected(self, expected: JsonValue) -> JsonValue:
        return expected  # the key is for the run's output alone

    def _compute(self, actual: JsonValue, expected: JsonValue, *, theirs: bool) -> float:
        text = str(actual) if theirs or isinstance(actual, str) else json.dumps(actual, ensure_ascii=False)
        search = str(expected)
        found = search in text if self.case_sensitive else search.lower() in text.lower()
        return float(found != self.negated)

    def _explain(self, actual: str, expected: str) -> str:
        return f"{expected} {'is' if self.negated else 'is not'} in {actual}"


_MISSING = object()


def _compare_leaves(actual: object, expected: JsonValue, path: str = "") -> Iterator[Leaf]:
    if {type(actual), type(expected)} <= {int, float}:
        yield path, _compare_numbers(cast("float", actual), cast("float", expected)), 1
    elif type(actual) is not type(expected):
        yield path, 0.0, len([*_compare_leaves(expected, expected)])
    elif isinstance(expected, dict | list):
        given = {str(key): value for key, value in _list_members(actual)}
        for key, value in _list_members(expected):
            yield from _compare_leaves(given.get(str(key), _MISSING), value, f"{path}/{escape_token(key)}")
    elif isinstance(expected, str):
        yield path, Levenshtein.normalized_similarity(expected, str(actual)), 1
    else:
        yield path, float(actual == expected), 1


def _list_members(value: JsonValue) -> Iterable[tuple[str | int, JsonValue]]:
    return value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()


def _compare_numbers(actual: float, expected: float) -> float:
    if actual == expected:
        return 1.0
    if abs(expected) <= NEXT_TO_ZERO:
        return float(abs(actual) <= NEXT_TO_ZERO)
    return max(0.0, min(1.0, 1.0 - abs(float(expected) - float(actual)) / abs(float(expected))))


def _average(leaves: Sequence[Leaf]) -> float:
    count = sum([standing for _, _, standing in leaves])
    return min(1.0, max(0.0, fsum([value for _, value, _ in leaves]) / count)) if count else 1.0


def read_part(output: JsonValue, key: str | tuple[str, ...]) -> JsonValue:
    """Return the part at a path of names and `[n]`, of which other characters are ignored; for several paths, an object of parts.

    Raises OutputPathError where the output has none.

    >>> read_part({"items": [{"a.b": 1, "n": 2}]}, "items[0].n")
    2
    """
    if not isinstance(key, str):
        if not isinstance(output, dict):
            raise OutputPathError("several keys are named, and the output is no object")
        return {one: read_part(output, one) for one in key}
    tokens: list[tuple[str, str]] = [] if key == ALL else re.findall(r"([^.\[\]]+)|\[(\d+)\]", key)
    if not tokens and key != ALL:
        raise OutputPathError(f"{key!r} names nothing")
    for name, index in tokens:
        if isinstance(output, list) and index and int(index) < len(output):
            output = output[int(index)]
        elif isinstance(output, dict) and not index and name in output:
            output = output[name]
        else:
            raise OutputPathError(f"the output has nothing at {int(index) if index else name!r}")
    return output

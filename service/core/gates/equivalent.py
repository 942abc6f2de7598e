"""The AST layer: are the calls the same, compared as syntax trees rather than as texts?"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.case import Case, Pair, build_call_path
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.critics import Critic, Match, OpenComparison
from service.core.expectations.expectation import CallPattern
from service.core.expectations.templates import Shape, has_matcher
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.schema import score_unread
from service.core.gates.tool_name import NO_CALLS, score_name, score_pairs, score_unmatched
from service.core.json.values import equals, format_value
from service.core.models.kinds import Several
from service.core.outcome import PERFECT, Finding, Outcome, Skipped, build_failure
from service.core.trace import Step

Normalisation = Literal["stringify", "strip_whitespace", "number_format", "case_fold", "nfc"]


class EquivalentGate(Check):
    """Compare names and arguments of calls, in any order of calls and keys, after normalisation: 1.0 or 0.0 for each call.

    Source: the AST layer of the three-layer method (schema, AST, execution). Normalisations apply to every leaf of both
    sides: `nfc` (Unicode composition), `strip_whitespace`, `case_fold`, `number_format` ("1,000" is the number 1000) and
    `stringify` (a number or boolean equals its text). A matcher in the expectation decides by its own rules. Finding:
    `not_equivalent`.
    """

    kind: Literal["equivalent"] = "equivalent"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "tools"})
    normalise: Several[Normalisation] = ()
    """The looser comparisons in force; none by default."""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each pair, each missing call, and each extra call that counts against the score."""
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        pairs = score_pairs(case, lambda pair: self._score_pair(case, pair))
        return [*pairs, *score_unmatched(case)] or [(WHOLE, NO_CALLS)]

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:  # noqa: ARG002
        """Return 1.0 for equal arguments, else 0.0."""
        if step.call.arguments is None or pattern.args is None:
            return float(pattern.args is None)
        return float(self._compare_arguments(pattern, step, step.call.arguments) is PERFECT)

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:  # noqa: ARG002
        """Whether arguments are compared by equality alone, with no matcher and no normalisation."""
        return not self.normalise and not has_matcher(pattern.args or {})

    def _score_pair(self, case: Case, pair: Pair) -> Outcome:
        right_tool = score_name(case, pair)
        pattern, step = pair.pattern, case.trace.steps[pair.step]
        if not right_tool.passed:
            return right_tool
        if step.call.arguments is None:
            return score_unread(step)
        return PERFECT if pattern.args is None else self._compare_arguments(pattern, step, step.call.arguments)

    def _compare_arguments(self, pattern: CallPattern, step: Step, actual: Mapping[str, JsonValue]) -> Outcome:
        expected = pattern.args or {}
        optional = {name for name, value in expected.items() if isinstance(value, Critic) and value.optional}
        both = [name for name in sorted(expected) if name in actual]
        compared = {name: self._compare_values(expected[name], actual[name]) for name in both}
        differing = [name for name, same in compared.items() if same is False]
        one_sided = (expected.keys() ^ actual.keys()) - (optional - actual.keys())
        path = f"{build_call_path(step)}/arguments"
        findings: list[Finding] = []
        for name in differing:
            wanted = "" if isinstance(expected[name], Critic) else f"expected {format_value(expected[name])}, "  # pyright: ignore[reportArgumentType]
            findings.append(Finding("not_equivalent", f"{name}: {wanted}got {format_value(actual[name])}", path))
        findings += [Finding("not_equivalent", f"{name}: only one side has it", path) for name in sorted(one_sided)]
        if findings:
            return build_failure(0.0, *findings)
        for name, same in compared.items():
            if isinstance(same, OpenComparison):
                return Skipped(same.cause, f"{name}: {same.reason}")
        return PERFECT

    def _compare_values(self, expected: object, actual: JsonValue) -> bool | OpenComparison:
        if isinstance(expected, Mapping | list) and has_matcher(expected):  # pyright: ignore[reportUnknownArgumentType]
            expected = Shape.model_construct(kind="shape", value=expected)
        if isinstance(expected, Critic):
            match = expected.match(actual, None)
            return match.passed if isinstance(match, Match) else match
        return equals(self.normalise_value(expected), self.normalise_value(actual))  # pyright: ignore[reportArgumentType]

    def normalise_value(self, value: JsonValue) -> JsonValue:
        """Return the value with every leaf normalised."""
        if isinstance(value, Mapping):
            return {key: self.normalise_value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.normalise_value(item) for item in value]
        for name in NORMALISATION_ORDER:
            if name in self.normalise:
                value = NORMALISERS[name](value)
        return value


def _stringify(value: JsonValue) -> JsonValue:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int) and value.bit_length() > 4_096:
        return value  # longer than any text that is read
    return str(value) if isinstance(value, int | float) else value


def _read_thousands(value: JsonValue) -> JsonValue:
    """Read a number written with thousands separators; return any other value as it is.

    >>> _read_thousands("1,000"), _read_thousands("-12,345.5"), _read_thousands("1,00"), _read_thousands("x")
    (1000, -12345.5, '1,00', 'x')
    """
    if not isinstance(value, str) or len(value) > 64 or not value.isascii():
        return value
    whole, dot, fraction = value.removeprefix("-").partition(".")
    groups = whole.split(",")
    grouped = len(groups) == 1 or (1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:]))
    if not grouped or not "".join(groups).isdigit() or (dot and not fraction.isdigit()):
        return value
    plain = value.replace(",", "")
    return float(plain) if dot else int(plain)


def _change_texts(change: Callable[[str], str]) -> Callable[[JsonValue], JsonValue]:
    return lambda value: change(value) if isinstance(value, str) else value


NORMALISERS: dict[Normalisation, Callable[[JsonValue], JsonValue]] = {
    "nfc": _change_texts(lambda text: unicodedata.normalize("NFC", text)),
    "strip_whitespace": _change_texts(str.strip),
    "case_fold": _change_texts(str.casefold),
    "number_format": _read_thousands,
    "stringify": _stringify,
}
NORMALISATION_ORDER: tuple[Normalisation, ...] = tuple(NORMALISERS)
"""Texts are cleaned before they are read as numbers, and numbers read before they are written as texts."""

"""Score a case by Arcade's method: tool selection and critics in one weighted number.

`service.core.methods.arcade_number` computes Arcade's own number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from math import fsum, isfinite
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Field, JsonValue

from service.core.alignment.binding import BoundArgument, bind
from service.core.alignment.worth_table import MAX_CHARACTER_COST
from service.core.case import Case, Pair, build_call_path
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.critics import Critic, Match, OpenComparison
from service.core.expectations.expectation import CallPattern
from service.core.expectations.templates import has_matcher
from service.core.gates.arguments import find_fill_ins
from service.core.gates.compat import explain_hidden_arguments, read_plain, spend_on_pairs
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.quantity import QuantityGate
from service.core.gates.schema import ARGUMENTS_NOT_CAPTURED, build_unparsable
from service.core.gates.tool_name import score_name, score_unmatched, settle_pair
from service.core.json.pointers import escape_token
from service.core.json.values import equals, format_value
from service.core.methods.arcade_critics import CriticKind, CriticSpec
from service.core.methods.arcade_dates import UndefinedUpstreamError
from service.core.methods.arcade_number import Call, CaseResult, Row, RubricSpec, add_placeholders, score_case
from service.core.models.kinds import TaggedUnion, find_kind
from service.core.outcome import (
    PERFECT,
    CriticRow,
    Errored,
    Finding,
    MethodScore,
    Outcome,
    Scored,
    Skipped,
    build_failure,
)
from service.core.trace import Step
from service.core.weights import Weight, WeightNumber, compute_shares, read_weight
from service.core.work_limits import COST_OF_A_MATCHER, count_text_chars
from service.errors import InputError


class ArcadeGate(Check):
    """Score tool selection and critics over the optimal alignment: (selection + weighted critics) / (their weights), by pair.

    A missing call and an unexpected one score 0. If no critic names an argument of the expected call, all its arguments are
    compared exactly and share a weight of 1. A critic that passes keeps its score. With `compat` in the rubric, the number is
    Arcade's own, bugs included, with its rows, and a finding says where it differs from ours. Source: ArcadeAI/arcade-mcp,
    `libs/arcade-evals`.
    """

    kind: Literal["arcade"] = "arcade"
    has_own_number: ClassVar[bool] = True
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "tools"})
    critics: dict[str, Annotated[Critic, TaggedUnion()]] = Field(default={})
    """Critics by argument name; matchers in the expectation take precedence."""
    weights: dict[str, Weight] = {}
    """Weights of critics by argument name, 1 where none is given; if any weight is a name, all are divided by their sum."""
    tool_selection_weight: WeightNumber = 1.0
    fail_on_tool_selection: bool = True
    """Whether a wrong tool makes the whole score 0."""
    fail_on_tool_call_quantity: bool = True
    """Whether a wrong number of calls makes the whole score 0."""
    today: Annotated[date, Field(strict=False)] | None = None
    """The day from which, with `compat`, Arcade's datetime critic fills in what a text leaves out; without it, such a text has no
    number."""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each pair, missing call and extra call; where one of its two gates fails, one for the trace."""
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        if case.matching.compat:
            return [(WHOLE, self._score_upstream(case))]
        failure = self._check_gates(case)
        if failure is not None:
            return [(WHOLE, failure)]
        return [*self._score_pairs(case), *score_unmatched(case)] or [(WHOLE, PERFECT)]

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """Return the score that this pair would get."""
        outcome = self._score_call(case, pattern, step, PERFECT)
        return outcome.value if isinstance(outcome, Scored) else 0.0

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:
        """Whether every argument is compared by equality, with no matcher."""
        return all(bound.critic is None for bound in self._get_bound(case, pattern, right_tool=True))

    def _check_gates(self, case: Case) -> Outcome | None:
        """Return the failure of the gate on the number of calls or on tool selection; None where both let the case through."""
        if self.fail_on_tool_call_quantity:
            for _, outcome in QuantityGate().look(case):
                if isinstance(outcome, Scored) and not outcome.passed:
                    return outcome
        if not self.fail_on_tool_selection:
            return None
        selections = [score_name(case, pair) for pair in case.alignment.pairs]
        findings = [finding for outcome in selections for finding in outcome.findings]
        return build_failure(0.0, *findings) if findings else None

    def _score_pairs(self, case: Case) -> Iterable[SubjectOutcome]:
        for pair in case.alignment.pairs:
            yield case.subjects[pair.step], settle_pair(case, pair, self._score_pair(case, pair))

    def _score_pair(self, case: Case, pair: Pair) -> Outcome:
        return self._score_call(case, pair.pattern, case.trace.steps[pair.step], score_name(case, pair))

    def _score_call(self, case: Case, pattern: CallPattern, step: Step, selection: Scored) -> Outcome:
        if step.call.arguments is None and pattern.args is not None:
            if selection.passed and not step.call.captured:
                return ARGUMENTS_NOT_CAPTURED
            return build_failure(0.0, *selection.findings, build_unparsable(step))
        bound = self._get_bound(case, pattern, right_tool=selection.passed)
        schema = case.find_validator(step)
        defaults = find_fill_ins(schema, bound) if schema else {}
        actual = {**defaults, **(step.call.arguments or {})}
        results = [(b, b.match(actual[b.name]) if b.name in actual else _score_absent(b)) for b in bound]
        return self._weigh(selection, results, step)

    def _get_bound(self, case: Case, pattern: CallPattern, *, right_tool: bool) -> list[BoundArgument]:
        return case.once((id(self), id(pattern), right_tool), lambda: self._bind(pattern, right_tool))

    def _bind(self, pattern: CallPattern, right_tool: bool) -> list[BoundArgument]:  # noqa: FBT001
        args = dict(sorted((pattern.args or {}).items()))
        with_critic = {name for name, value in args.items() if has_matcher(value)} | self.critics.keys()
        criticised = [name for name in args if name in with_critic]
        if not criticised:
            return (
                [BoundArgument(n, cast("JsonValue", v), None, 1.0 / len(args)) for n, v in args.items()]
                if right_tool
                else []
            )
        weights = self._compute_shares(pattern, criticised)
        return [bind(name, args[name], critics=self.critics, weight=weights[name]) for name in criticised]

    def _compute_shares(self, pattern: CallPattern, names: Iterable[str]) -> dict[str, float]:
        weights: dict[str, Weight] = {**self.weights, **pattern.weights}
        return compute_shares({name: weights.get(name, 1.0) for name in names})

    def _weigh(
        self, selection: Scored, results: list[tuple[BoundArgument, Match | OpenComparison]], step: Step
    ) -> Outcome:
        for bound, match in results:
            if isinstance(match, OpenComparison):
                return Skipped(match.cause, f"{bound.name}: {match.reason}")
        matches = [(bound, match) for bound, match in results if isinstance(match, Match)]
        total = fsum([self.tool_selection_weight, *(bound.weight for bound, _ in matches)])
        gained = fsum([self.tool_selection_weight * selection.value, *(b.weight * m.value for b, m in matches)])
        path = f"{build_call_path(step)}/arguments"
        findings = [
            Finding("wrong_argument", f"{b.name}: {m.note}", f"{path}/{b.name}") for b, m in matches if not m.passed
        ]
        passed = selection.passed and not findings
        if passed and all(match.value == 1.0 for _, match in matches):
            return PERFECT
        findings += [
            Finding("close_match", f"{b.name}: passes with a score of {m.value:.2f}", f"{path}/{b.name}")
            for b, m in matches
            if m.passed and m.value < 1.0
        ]
        value = min(1.0, gained / total) if total else float(passed)
        return Scored(value, passed, (*selection.findings, *findings))

    def _score_upstream(self, case: Case) -> Outcome:
        """Return Arcade's own number, clamped to [0, 1], with the raw one beside it."""
        if hidden := explain_hidden_arguments(case):
            return hidden
        if any(step.call.arguments is None for step in case.trace.steps):
            return Errored("undefined_upstream", "Arcade stops the whole suite where arguments are no JSON object")
        expected = [(pattern.tool, _read_plain_args(path, pattern)) for path, pattern in _list_patterns(case)]
        actual = [(step.call.name, step.call.arguments or {}) for step in case.trace.steps]
        critics = add_placeholders(expected, self._build_specs(case))
        spend_on_pairs(case, each=4 + COST_OF_A_MATCHER * len(critics))
        _spend_on_texts(case, expected, actual)
        rubric = RubricSpec(
            fail_threshold=case.matching.fail_threshold,
            warn_threshold=case.matching.warn_threshold,
            fail_on_tool_selection=self.fail_on_tool_selection,
            fail_on_tool_call_quantity=self.fail_on_tool_call_quantity,
            tool_selection_weight=self.tool_selection_weight,
        )
        schemas = {t.name: t.parameters for t in case.trace.tools or () if isinstance(t.parameters, Mapping)}
        try:
            result = score_case(expected, actual, critics, rubric, schemas)
        except (ValueError, UndefinedUpstreamError) as error:
            return Errored("undefined_upstream", f"Arcade gives no number here: {error}")
        if not isfinite(result.score):
            return Errored("undefined_upstream", f"Arcade's number is {result.score}")
        value = min(1.0, max(0.0, result.score))
        findings = self._find_differences(case, result)
        if result.warning:
            findings += (Finding("arcade_warning", f"Arcade warns: {result.score:.6g}", "/steps"),)
        rows = tuple([CriticRow(row.field, row.match, row.score, row.weight) for row in result.rows])
        return MethodScore(value=value, passed=result.passed, findings=findings, raw=result.score, rows=rows)

    def _build_specs(self, case: Case) -> list[CriticSpec]:
        """Translate the critics of rubric and expectation into Arcade's, one for each field."""
        critics = {name: (f"/rubric/critics/{escape_token(name)}", critic) for name, critic in self.critics.items()}
        weights = dict(self.weights)
        for path, pattern in _list_patterns(case):
            matchers = {name: value for name, value in (pattern.args or {}).items() if isinstance(value, Critic)}
            critics |= {name: (f"{path}/args/{escape_token(name)}", critic) for name, critic in matchers.items()}
            weights |= pattern.weights
        specs = [_build_spec(name, *critic, weights.get(name, 1.0)) for name, critic in critics.items()]
        return [replace(spec, today=self.today) for spec in specs]

    def _find_differences(self, case: Case, result: CaseResult) -> tuple[Finding, ...]:
        ours = self._compute_ours(case)
        if ours is None or abs(ours - result.score) <= 1e-9:
            return ()
        difference = _explain_difference(result, len(case.expected_calls))
        message = f"Arcade gives {result.score:.6g}, callgrade {ours:.6g}: {difference}"
        return (Finding("compat_differs", message, "/steps"),)

    def _compute_ours(self, case: Case) -> float | None:
        strict = Case(case.trace, case.expectation, case.matching.make_strict())
        values = [outcome.value for _, outcome in self.look(strict) if isinstance(outcome, Scored)]
        return fsum(values) / len(values) if values else None


def _list_patterns(case: Case) -> list[tuple[str, CallPattern]]:
    """Return the pointer and the pattern of every expected call."""
    return [expected_call.options[0] for expected_call in case.expected_calls]


def _score_absent(bound: BoundArgument) -> Match:
    return Match(1.0, True) if bound.optional else Match(0.0, False, "missing")


def _spend_on_texts(case: Case, expected: Sequence[Call], actual: Sequence[Call]) -> None:
    """Charge the budget for the characters read when every pair is compared."""
    expected_chars = count_text_chars([args for _, args in expected])
    actual_chars = count_text_chars([args for _, args in actual])
    chars = expected_chars * len(actual) + actual_chars * len(expected)
    case.meter.spend("characters", MAX_CHARACTER_COST * chars)


def _read_plain_args(path: str, pattern: CallPattern) -> dict[str, JsonValue]:
    """Return the expected arguments, with each matcher's value in its place. Raise InputError for a matcher inside a value."""
    args = pattern.args or {}
    return {
        name: getattr(v, "value", None)
        if isinstance(v, Critic)
        else read_plain(f"{path}/args/{escape_token(name)}", v, "Arcade")
        for name, v in args.items()
    }


_CRITIC_KINDS: Mapping[str, CriticKind] = {
    "exact": "binary",
    "numeric": "numeric",
    "similar": "similarity",
    "datetime": "datetime",
}


def _build_spec(name: str, path: str, critic: Critic, weight: Weight) -> CriticSpec:
    own_kind = find_kind(type(critic)) or ""
    kind = _CRITIC_KINDS.get(own_kind)
    if kind is None:
        raise InputError.at(path, f"Arcade has no critic like {own_kind}; it has {', '.join(_CRITIC_KINDS)}")
    value_range = getattr(critic, "value_range", None)
    if kind == "numeric" and value_range is None:
        raise InputError.at(path, "Arcade's numeric critic needs a value_range")
    low, high = value_range or (0.0, 1.0)
    settings = {
        "threshold": getattr(critic, "threshold", None),
        "tolerance": getattr(critic, "tolerance", None)
        if kind == "datetime" and "tolerance" in critic.model_fields_set
        else None,
        "max_difference": getattr(critic, "cutoff", None) if kind == "datetime" else None,
    }
    given = {key: value for key, value in settings.items() if value is not None}
    return CriticSpec(
        name, kind, read_weight(weight) if not isinstance(weight, str) else weight, low=low, high=high, **given
    )


def _is_same_without_cast(row: Row) -> bool:
    """Whether a row's values are equal as they are, or its critic does not cast."""
    return row.kind != "binary" or equals(row.expected, row.actual)


def _explain_difference(result: CaseResult, expected: int) -> str:
    """Name the quirk of Arcade's that made the difference."""
    if any(not row.counted for row in result.rows):
        return "a critic that raises drops its weight there, here it scores 0"
    if not 0.0 <= result.score <= 1.0 or any(row.score < 0 for row in result.rows):
        return "a value outside the range is not clamped there"
    if len({row.pair[0] for row in result.rows}) < expected:
        return "an expected call without a counterpart is left out there, here it scores 0"
    cast_row = next((row for row in result.rows if row.match and not _is_same_without_cast(row)), None)
    if cast_row is not None:
        values = f"{format_value(cast_row.actual)} to the type of {format_value(cast_row.expected)}"
        return f"its critic of {cast_row.field} casts {values}, here values keep their types"
    moment = next((row for row in result.rows if row.kind == "datetime"), None)
    if moment is not None:
        return f"its critic of {moment.field} reads dates as dateutil does, within 500 s unless it says otherwise"
    return "arguments that no critic names, or that neither side has, are counted otherwise"

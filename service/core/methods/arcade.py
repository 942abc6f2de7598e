"""Arcade's way of scoring a case: tool selection and critics in one weighted number.

Their own number stands at the end.
Source: ArcadeAI/arcade-mcp, `libs/arcade-evals/arcade_evals/eval.py` (EvalCase.evaluate) and `weights.py`. What a critic raises
removes its weight, so a missing argument can raise the score; a pair without the field can be a match; a score can be
negative; and with the default thresholds no score warns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Field, JsonValue

from service.core.alignment.binding import BoundArgument, bind
from service.core.alignment.likeness import MOST_A_CHARACTER_COSTS
from service.core.budget import COST_OF_A_MATCHER, count_text_chars
from service.core.case import Case, Pair, build_call_path
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.critics import Critic, Match, OpenComparison
from service.core.expectation import CallPattern
from service.core.gates.arguments import find_stand_ins
from service.core.gates.compat import find_hidden_arguments, read_plain, spend_on_pairs
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.quantity import QuantityGate
from service.core.gates.schema import NOT_TOLD, build_unparsable
from service.core.gates.tool_name import score_name, score_unmatched, settle_pair
from service.core.json.pointers import escape_token
from service.core.kinds import TaggedUnion, find_kind
from service.core.methods.arcade_critics import CriticKind, CriticResult, CriticSpec, compare
from service.core.outcome import PERFECT, Errored, Finding, MethodScore, Outcome, Scored, Skipped, build_failure
from service.core.shapes import has_matcher
from service.core.trace import Step
from service.core.weights import Weight, compute_shares, read_weight
from service.errors import InputError


class ArcadeGate(Check):
    """Tool selection and critics over the optimal alignment: (selection + weighted critics) / (their weights), for each pair.

    A missing call and an unexpected one are 0. Where no critic names an argument of the expected call, all its arguments
    are compared exactly, sharing a weight of 1. With `compat` in the rubric the number is Arcade's own, bugs included, and
    a finding says where it differs from ours. Source: ArcadeAI/arcade-mcp, `libs/arcade-evals`.
    """

    kind: Literal["arcade"] = "arcade"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "tools"})
    critics: dict[str, Annotated[Critic, TaggedUnion()]] = Field(default={})
    """Critics by argument name; matchers in the expectation go before them."""
    weights: dict[str, Weight] = {}
    """Weights of critics by argument name, 1 where none is given; as soon as one is a name, all are divided by their sum."""
    tool_selection_weight: float = Field(default=1.0, ge=0)
    fail_on_tool_selection: bool = True
    """Whether a wrong tool makes the whole score 0."""
    fail_on_tool_call_quantity: bool = True
    """Whether a wrong number of calls makes the whole score 0."""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """One outcome for each pair, each missing call and each extra one; one for the trace where a gate closes."""
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        if case.matching.compat:
            return [(WHOLE, self._score_upstream(case))]
        closed = self._check_gates(case)
        if closed is not None:
            return [(WHOLE, closed)]
        return [*self._score_pairs(case), *score_unmatched(case)] or [(WHOLE, PERFECT)]

    def pair_value(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """The score this pair would get."""
        outcome = self._score_call(case, pattern, step, PERFECT)
        return outcome.value if isinstance(outcome, Scored) else 0.0

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:
        """Whether no matcher compares."""
        return all(bound.critic is None for bound in self._get_bound(case, pattern, right_tool=True))

    def _check_gates(self, case: Case) -> Outcome | None:
        """The outcome where a gate closes."""
        if self.fail_on_tool_call_quantity:
            for _, outcome in QuantityGate().look(case):
                if isinstance(outcome, Scored) and not outcome.passed:
                    return outcome
        if not self.fail_on_tool_selection:
            return None
        chosen = [score_name(case, pair) for pair in case.alignment.pairs]
        wrong = [finding for outcome in chosen for finding in outcome.findings]
        return build_failure(0.0, *wrong) if wrong else None

    def _score_pairs(self, case: Case) -> Iterable[SubjectOutcome]:
        for pair in case.alignment.pairs:
            yield case.subjects[pair.step], settle_pair(case, pair, self._score_pair(case, pair))

    def _score_pair(self, case: Case, pair: Pair) -> Outcome:
        return self._score_call(case, pair.pattern, case.trace.steps[pair.step], score_name(case, pair))

    def _score_call(self, case: Case, pattern: CallPattern, step: Step, selection: Scored) -> Outcome:
        if step.call.arguments is None and pattern.args is not None:
            if selection.passed and not step.call.captured:
                return NOT_TOLD
            return build_failure(0.0, *selection.findings, build_unparsable(step))
        bound = self._get_bound(case, pattern, right_tool=selection.passed)
        schema = case.find_schema(step)
        defaults = find_stand_ins(schema, bound) if schema else {}
        actual = {**defaults, **(step.call.arguments or {})}
        results = [(b, b.match(actual[b.name]) if b.name in actual else _score_absent(b)) for b in bound]
        return self._weigh(selection, results, step)

    def _get_bound(self, case: Case, pattern: CallPattern, *, right_tool: bool) -> list[BoundArgument]:
        return case.once((id(self), id(pattern), right_tool), lambda: self._bind(pattern, right_tool))

    def _bind(self, pattern: CallPattern, right_tool: bool) -> list[BoundArgument]:  # noqa: FBT001
        args = dict(sorted((pattern.args or {}).items()))
        named_critics = {name for name, value in args.items() if has_matcher(value)} | self.critics.keys()
        criticised = [name for name in args if name in named_critics]
        if not criticised:
            return (
                [BoundArgument(n, cast("JsonValue", v), None, 1.0 / len(args)) for n, v in args.items()]
                if right_tool
                else []
            )
        weights = self._compute_shares(pattern, criticised)
        return [bind(name, args[name], critics=self.critics, weight=weights[name]) for name in criticised]

    def _compute_shares(self, pattern: CallPattern, names: Iterable[str]) -> dict[str, float]:
        given: dict[str, Weight] = {**self.weights, **pattern.weights}
        return compute_shares({name: given.get(name, 1.0) for name in names})

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
        if not findings and selection.passed:
            return PERFECT
        value = min(1.0, gained / total) if total else 0.0
        return Scored(value, False, (*selection.findings, *findings))

    def _score_upstream(self, case: Case) -> Outcome:
        """Arcade's own number, clamped, with the raw one beside it."""
        if hidden := find_hidden_arguments(case):
            return hidden
        expected = [(pattern.tool, _read_plain_args(path, pattern)) for path, pattern in _list_patterns(case)]
        actual = [(step.call.name, step.call.arguments or {}) for step in case.trace.steps]
        critics = add_placeholders(expected, self._build_specs(case))
        spend_on_pairs(case, each=4 + COST_OF_A_MATCHER * len(critics))
        _spend_on_texts(case, expected, actual)
        rubric = RubricSpec(
            fail_on_tool_selection=self.fail_on_tool_selection,
            fail_on_tool_call_quantity=self.fail_on_tool_call_quantity,
            tool_selection_weight=self.tool_selection_weight,
        )
        schemas = {t.name: t.parameters for t in case.trace.tools or () if isinstance(t.parameters, Mapping)}
        try:
            result = score_case(expected, actual, critics, rubric, schemas)
        except ValueError as error:
            return Errored("undefined_upstream", f"Arcade gives no number here: {error}")
        if not isfinite(result.score):
            return Errored("undefined_upstream", f"Arcade's number is {result.score}")
        value = min(1.0, max(0.0, result.score))
        return MethodScore(
            value=value, passed=result.passed, findings=self._find_differences(case, result), raw=result.score
        )

    def _build_specs(self, case: Case) -> list[CriticSpec]:
        """Arcade's critics for ours: rubric and expectation together, one for a field."""
        critics: dict[str, Critic] = dict(self.critics)
        weights = dict(self.weights)
        for _, pattern in _list_patterns(case):
            critics |= {name: value for name, value in (pattern.args or {}).items() if isinstance(value, Critic)}
            weights |= pattern.weights
        return [_build_spec(name, critic, weights.get(name, 1.0)) for name, critic in critics.items()]

    def _find_differences(self, case: Case, result: CaseResult) -> tuple[Finding, ...]:
        ours = self._compute_ours(case)
        if ours is None or abs(ours - result.score) <= 1e-9:
            return ()
        message = (
            f"Arcade gives {result.score:.6g}, callgrade {ours:.6g}: {_explain_difference(result, len(case.wanted))}"
        )
        return (Finding("compat_differs", message, "/steps"),)

    def _compute_ours(self, case: Case) -> float | None:
        strict = Case(case.trace, case.expectation, case.matching.make_strict())
        values = [outcome.value for _, outcome in self.look(strict) if isinstance(outcome, Scored)]
        return fsum(values) / len(values) if values else None


def _list_patterns(case: Case) -> list[tuple[str, CallPattern]]:
    """The expected calls with their places."""
    return [wanted.options[0] for wanted in case.wanted]


def _score_absent(bound: BoundArgument) -> Match:
    return Match(1.0, True) if bound.optional else Match(0.0, False, "missing")


def _spend_on_texts(case: Case, expected: Sequence[Call], actual: Sequence[Call]) -> None:
    """Counts the characters that are read where every pair is compared."""
    asked, given = count_text_chars([args for _, args in expected]), count_text_chars([args for _, args in actual])
    case.meter.spend("characters", MOST_A_CHARACTER_COSTS * (asked * len(actual) + given * len(expected)))


def _read_plain_args(path: str, pattern: CallPattern) -> dict[str, JsonValue]:
    """The expected arguments with each matcher's own value in its place. InputError for a matcher inside a value."""
    args = pattern.args or {}
    return {
        name: getattr(v, "value", None)
        if isinstance(v, Critic)
        else read_plain(f"{path}/args/{escape_token(name)}", v, "Arcade")
        for name, v in args.items()
    }


_KINDS: Mapping[str, CriticKind] = {
    "exact": "binary",
    "numeric": "numeric",
    "similar": "similarity",
    "datetime": "datetime",
}


def _build_spec(name: str, critic: Critic, weight: Weight) -> CriticSpec:
    name_of_kind = find_kind(type(critic)) or ""
    kind = _KINDS.get(name_of_kind)
    if kind is None:
        raise InputError.at(
            f"/rubric/critics/{name}", f"Arcade has no critic like {name_of_kind}; it has {', '.join(_KINDS)}"
        )
    spans = getattr(critic, "value_range", None)
    if kind == "numeric" and spans is None:
        raise InputError.at(f"/rubric/critics/{name}", "Arcade's numeric critic needs a value_range")
    low, high = spans or (0.0, 1.0)
    extra = {
        "threshold": getattr(critic, "threshold", None),
        "tolerance": getattr(critic, "tolerance", None) if kind == "datetime" else None,
        "max_difference": getattr(critic, "cutoff", None) if kind == "datetime" else None,
    }
    given = {key: value for key, value in extra.items() if value is not None}
    return CriticSpec(
        name, kind, read_weight(weight) if not isinstance(weight, str) else weight, low=low, high=high, **given
    )


def _explain_difference(result: CaseResult, expected: int) -> str:
    """Which of Arcade's ways made the difference."""
    if any(not row.counted for row in result.rows):
        return "a critic that raises drops its weight there, here it scores 0"
    if not 0.0 <= result.score <= 1.0 or any(row.score < 0 for row in result.rows):
        return "a value outside the range is not clamped there"
    if len({row.pair[0] for row in result.rows}) < expected:
        return "an expected call without a counterpart is left out there, here it scores 0"
    return "arguments that no critic names, or that neither side has, are counted otherwise"


# The number, as their code has it.


Call = tuple[str, Mapping[str, JsonValue]]
Schema = Mapping[str, JsonValue]
Critics = Sequence[CriticSpec]
WeightedCritics = Sequence[tuple[CriticSpec, float]]

TOOL_SELECTION = "tool_selection"


@dataclass(frozen=True, slots=True)
class RubricSpec:
    """Arcade's EvalRubric with its defaults."""

    fail_threshold: float = 0.8
    warn_threshold: float = 0.9
    fail_on_tool_selection: bool = True
    fail_on_tool_call_quantity: bool = True
    tool_selection_weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Row:
    """What was made of one field of one pair of calls (or of its tool, under `tool_selection`).

    `pair` holds the positions of the expected and the actual call; `score` is already weighted; `match` is None where
    nothing was compared. `counted` is False where the critic raised: the row scores 0 and its weight is left out.
    """

    pair: tuple[int, int]
    field: str
    expected: JsonValue
    actual: JsonValue
    weight: float
    score: float
    match: bool | None
    counted: bool = True


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Arcade's result. `failure_reason` is set where a gate closed.

    `score` is at most 1 and may be negative, in the extreme minus infinity (an infinite argument under a numeric critic).
    """

    score: float
    passed: bool
    warning: bool = False
    failure_reason: str | None = None
    rows: tuple[Row, ...] = ()


def score_case(
    expected: Sequence[Call],
    actual: Sequence[Call],
    critics: Critics = (),
    rubric: RubricSpec | None = None,
    schemas: Mapping[str, Schema] | None = None,
) -> CaseResult:
    """Arcade's number for one case.

    `critics` are taken as given, with no more than one for a field; Arcade's `add_case` passes them through
    `add_placeholders` first. `schemas` are the tools' JSON Schemas by name, whose defaults fill arguments that are missing
    or null, on both sides. Arguments that no critic names are not compared.
    Raises ValueError for two critics of one field, and where Arcade itself stops because the arguments hold NaN or an
    infinity (which numeric critics read from text, too) and no assignment can be made.
    """
    if len({critic.field for critic in critics}) < len(critics):
        raise ValueError("a field has one critic")
    rubric = rubric or RubricSpec()
    reason = _find_gate_reason(expected, actual, rubric)
    if reason:
        return CaseResult(0.0, False, failure_reason=reason)
    if not critics or not (expected or actual):
        return CaseResult(1.0, True)
    wanted = [fill_defaults(call, schemas or {}) for call in expected]
    made = [fill_defaults(call, schemas or {}) for call in actual]
    return _conclude_case(tuple(_build_rows(wanted, made, _share_weights(critics), rubric)), rubric)


def _share_weights(critics: Critics) -> WeightedCritics:
    """The critics with their shares of the weight; placeholders have none."""
    share = compute_shares({critic.field: critic.weight for critic in critics if critic.kind != "none"})
    return [(critic, share.get(critic.field, 0.0)) for critic in critics]


def add_placeholders(expected: Sequence[Call], critics: Critics) -> tuple[CriticSpec, ...]:
    """The critics, and one that does not look for every expected argument that has none.

    So a case is without critics, which is a pass whatever was called once the gates are off, only if no expected call has
    an argument.
    """
    named = {critic.field for critic in critics}
    fields = dict.fromkeys(field for _, args in expected for field in args if field not in named)
    return (*critics, *(CriticSpec(field, "none", 0.0) for field in fields))


def fill_defaults(call: Call, schemas: Mapping[str, Schema]) -> Call:
    """The call, with its schema's defaults for arguments that are missing or null. A tool `a.b` is also found as `a_b`."""
    name, args = call
    found = schemas.get(name) or next(
        (schema for key, schema in schemas.items() if key.replace(".", "_") == name), None
    )
    properties = found.get("properties") if found else None
    if not isinstance(properties, Mapping):
        return call
    defaults: dict[str, JsonValue] = {
        key: value["default"]
        for key, value in properties.items()
        if isinstance(value, Mapping) and "default" in value and args.get(key) is None
    }
    return name, {**args, **defaults}


def _find_gate_reason(expected: Sequence[Call], actual: Sequence[Call], rubric: RubricSpec) -> str | None:
    """Why the case fails before any critic is asked. The shorter list of names decides how many are compared."""
    if rubric.fail_on_tool_call_quantity and len(expected) != len(actual):
        return f"{len(expected)} calls expected, {len(actual)} made"
    wanted, made = sorted(name for name, _ in expected), sorted(name for name, _ in actual)
    all_same = all(is_same_name(one, other) for one, other in zip(wanted, made, strict=False))
    if rubric.fail_on_tool_selection and not all_same:
        return f"expected the tools {', '.join(wanted)}, got {', '.join(made)}"
    return None


def is_same_name(expected: str, actual: str) -> bool:
    """Whether two tool names are one: `-`, `_` and `.` count as the same, capitals do not count.

    >>> is_same_name("Google.Search-All", "google_search_all")
    True
    """
    one, other = (name.replace("-", ".").replace("_", ".").lower() for name in (expected, actual))
    return one == other


def _build_rows(
    expected: Sequence[Call], actual: Sequence[Call], critics: WeightedCritics, rubric: RubricSpec
) -> Iterator[Row]:
    """The rows of every assigned pair; a call with no counterpart has none, and so costs nothing."""
    size = max(len(expected), len(actual))
    gains = [[0.0] * size for _ in range(size)]
    for i, wanted in enumerate(expected):
        gains[i][: len(actual)] = [_compute_gain(wanted, made, critics, rubric) for made in actual]
    for i, j in _assign(gains):
        if i < len(expected) and j < len(actual):
            yield from _build_pair_rows((i, j), expected[i], actual[j], critics, rubric)


def _compute_gain(wanted: Call, made: Call, critics: WeightedCritics, rubric: RubricSpec) -> float:
    """What pairing the two is worth to the assignment. Unlike the score, it leaves out fields that either side lacks."""
    gain = rubric.tool_selection_weight if is_same_name(wanted[0], made[0]) else 0.0
    for critic, weight in critics:
        expected, actual = wanted[1].get(critic.field), made[1].get(critic.field)
        result = _compare(critic, expected, actual) if expected is not None and actual is not None else None
        gain += result.share * weight if result else 0.0
    return gain


def _compare(critic: CriticSpec, expected: JsonValue, actual: JsonValue) -> CriticResult | None:
    """What the critic says; None where it raises."""
    try:
        return compare(critic, expected, actual)
    except (ValueError, TypeError, ArithmeticError):
        return None


def _assign(gains: list[list[float]]) -> list[tuple[int, int]]:
    """The assignment with the greatest gain. Its choice among equals can move the score, so it is scipy's own, as upstream."""
    if len(gains) == 1 and isfinite(gains[0][0]):
        return [(0, 0)]
    from scipy import optimize  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] (heavy, and most cases have one call)

    solve = cast("Callable[..., tuple[Iterable[int], Iterable[int]]]", optimize.linear_sum_assignment)
    rows, columns = solve(gains, maximize=True)
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True)]


def _build_pair_rows(
    pair: tuple[int, int], wanted: Call, made: Call, critics: WeightedCritics, rubric: RubricSpec
) -> Iterator[Row]:
    is_same, weight = is_same_name(wanted[0], made[0]), rubric.tool_selection_weight
    yield Row(pair, TOOL_SELECTION, wanted[0], made[0], weight, weight * is_same, is_same)
    for critic, weight in critics:
        expected, actual = wanted[1].get(critic.field), made[1].get(critic.field)
        compared = _compare(critic, expected, actual)
        result = compared or CriticResult(False, 0.0)
        score = result.share * weight
        yield Row(pair, critic.field, expected, actual, weight, score, result.match, compared is not None)


def _conclude_case(rows: tuple[Row, ...], rubric: RubricSpec) -> CaseResult:
    weight = sum(row.weight for row in rows if row.counted)
    score = sum(row.score for row in rows) / weight if weight > 0 else 0.0
    passed = score >= rubric.fail_threshold
    return CaseResult(score, passed, warning=not passed and score >= rubric.warn_threshold, rows=rows)

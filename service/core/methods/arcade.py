"""Score a case by Arcade's method: tool selection and critics in one weighted number.

Source: ArcadeAI/arcade-mcp, `libs/arcade-evals/arcade_evals/eval.py` (EvalCase.evaluate) and `weights.py`. With `compat`, the
number is Arcade's: a critic that raises loses its weight, so a missing argument can raise the score; a pair without the field can
be a match; arguments that no critic names are not compared; a score can be negative; and with the default thresholds none warns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from math import fsum, isfinite
from typing import Annotated, ClassVar, Literal, NamedTuple, cast

from pydantic import Field, JsonValue

from service.core.alignment.binding import BoundArgument, bind
from service.core.case import Case, Pair, build_call_path, fold_name
from service.core.checks import WHOLE, Aspect, SubjectOutcome
from service.core.critics import MATCHED, Critic, DateTime, Exact, OpenComparison
from service.core.expectations.expectation import CallPattern
from service.core.expectations.templates import Template, has_matcher
from service.core.gates import published
from service.core.gates.arguments import find_fill_ins
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.quantity import QuantityGate
from service.core.gates.schema import build_unparsable, explain_gap
from service.core.gates.tool_name import score_name, score_pairs, score_unmatched
from service.core.json.pointers import escape_token
from service.core.json.values import equals, format_value
from service.core.methods.arcade_critics import UndefinedUpstreamError, compare, require_critic
from service.core.models.kinds import TaggedUnion
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
from service.core.weights import Weight, WeightNumber, compute_shares
from service.core.work_limits import COST_OF_A_CHARACTER, COST_OF_A_MATCHER, count_text_chars

Call = tuple[str, Mapping[str, JsonValue]]
Critics = Mapping[str, tuple[Critic | None, float]]
"""By argument: the critic, None for one that is not compared, and its share of the weight."""


class Row(NamedTuple):
    """Arcade's result for one field of one pair of calls, or for its tool (`critic` None).

    `counted` is False where the critic raised: the row scores 0 and its weight is left out.
    """

    shown: CriticRow
    expected_call: int
    expected: JsonValue
    actual: JsonValue
    critic: Critic | None = None
    counted: bool = True


class ArcadeGate(published.PublishedCheck):
    """Score tool selection and critics over the optimal alignment: (selection + weighted critics) / (their weights), by pair.

    A missing call and an unexpected one score 0. If no critic names an argument of the expected call, all its arguments are
    compared exactly and share a weight of 1. A critic that passes keeps its score. With `compat` in the rubric, the number is
    Arcade's own, bugs included, with its rows, and a finding says where it differs from ours. Source: ArcadeAI/arcade-mcp,
    `libs/arcade-evals`.
    """

    kind: Literal["arcade"] = "arcade"
    system: ClassVar[str] = "Arcade"
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
            return [(WHOLE, self._give_own_number(case))]
        if self.fail_on_tool_call_quantity:
            for subject, quantity in QuantityGate().look(case):
                if isinstance(quantity, Scored) and not quantity.passed:
                    return [(subject, quantity)]
        names = [score_name(case, pair) for pair in case.alignment.pairs] if self.fail_on_tool_selection else []
        if any(not name.passed for name in names):
            return [(WHOLE, build_failure(0.0, *[finding for name in names for finding in name.findings]))]

        def score(pair: Pair) -> Outcome:
            return self._score_call(case, pair.pattern, case.trace.steps[pair.step], score_name(case, pair))

        return [*score_pairs(case, score), *score_unmatched(case)] or [(WHOLE, PERFECT)]

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """Return the score that this pair would get."""
        outcome = self._score_call(case, pattern, step, PERFECT)
        return outcome.value if isinstance(outcome, Scored) else 0.0

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:
        """Whether every argument is compared by equality, with no matcher."""
        return all(bound.critic is None for bound in self._get_bound(case, pattern, right_tool=True))

    def _score_call(self, case: Case, pattern: CallPattern, step: Step, selection: Scored) -> Outcome:
        if step.call.arguments is None and pattern.args is not None:
            if selection.passed and not step.call.captured:
                return explain_gap(step)
            return build_failure(0.0, *selection.findings, build_unparsable(step))
        bound, schema = self._get_bound(case, pattern, right_tool=selection.passed), case.find_validator(step)
        actual = {**(find_fill_ins(schema, bound) if schema else {}), **(step.call.arguments or {})}
        weights, gains = [self.tool_selection_weight], [self.tool_selection_weight * selection.value]
        wrong, close, path = list[Finding](), list[Finding](), f"{build_call_path(step)}/arguments"
        for one in bound:
            absent = MATCHED if one.optional else published.MISSING
            match = one.match(actual[one.name]) if one.name in actual else absent
            if isinstance(match, OpenComparison):
                return Skipped(match.cause, f"{one.name}: {match.reason}")
            weights.append(one.weight)
            gains.append(one.weight * match.value)
            if not match.passed:
                wrong.append(Finding("wrong_argument", f"{one.name}: {match.note}", f"{path}/{one.name}"))
            elif match.value < 1.0:
                note = f"{one.name}: passes with a score of {match.value:.2f}"
                close.append(Finding("close_match", note, f"{path}/{one.name}"))
        passed, total = selection.passed and not wrong, fsum(weights)
        if passed and not close:
            return PERFECT
        value = min(1.0, fsum(gains) / total) if total else float(passed)
        return Scored(value, passed, (*selection.findings, *wrong, *close))

    def _get_bound(self, case: Case, pattern: CallPattern, *, right_tool: bool) -> list[BoundArgument]:
        return case.once((id(self), id(pattern), right_tool), lambda: self._bind(pattern, right_tool))

    def _bind(self, pattern: CallPattern, right_tool: bool) -> list[BoundArgument]:  # noqa: FBT001
        args = dict(sorted((pattern.args or {}).items()))
        criticised = [name for name, value in args.items() if has_matcher(value) or name in self.critics]
        if not criticised:
            shared = args.items() if right_tool else ()
            return [BoundArgument(name, cast("JsonValue", value), None, 1.0 / len(args)) for name, value in shared]
        weights: dict[str, Weight] = {**self.weights, **pattern.weights}
        shares = compute_shares({name: weights.get(name, 1.0) for name in criticised})
        return [bind(name, args[name], critics=self.critics, weight=shares[name]) for name in criticised]

    def _give_own_number(self, case: Case) -> Outcome:
        """Return Arcade's own number, clamped to [0, 1], with the raw one beside it."""
        if hidden := published.explain_hidden_arguments(case):
            return hidden
        if any(step.call.arguments is None for step in case.trace.steps):
            return Errored("undefined_upstream", "Arcade stops the whole suite where arguments are no JSON object")
        expected = self.list_plain_calls(case)
        actual: list[Call] = [(step.call.name, step.call.arguments or {}) for step in case.trace.steps]
        critics = self._list_critics(case, expected)
        published.spend_on_pairs(case, each=4 + COST_OF_A_MATCHER * len(critics))
        chars = [count_text_chars([args for _, args in side]) for side in (expected, actual)]
        case.meter.spend("characters", COST_OF_A_CHARACTER * (chars[0] * len(actual) + chars[1] * len(expected)))
        if self._stops_at_gates(expected, actual):
            return self._conclude(case, 0.0, passed=False)
        if not critics or not (expected or actual):
            return self._conclude(case, 1.0, passed=True)
        schemas = {tool.name: tool.parameters for tool in case.trace.tools or ()}
        try:
            filled = [[_fill_defaults(call, schemas) for call in side] for side in (expected, actual)]
            rows = self._compare_all(filled[0], filled[1], critics)
        except (ValueError, UndefinedUpstreamError) as error:
            return Errored("undefined_upstream", f"Arcade gives no number here: {error}")
        weight = sum(row.shown.weight for row in rows if row.counted)
        score = sum(row.shown.score for row in rows) / weight if weight > 0 else 0.0
        if not isfinite(score):
            return Errored("undefined_upstream", f"Arcade's number is {score}")
        return self._conclude(case, score, passed=score >= case.matching.fail_threshold, rows=rows)

    def _conclude(self, case: Case, score: float, *, passed: bool, rows: Sequence[Row] = ()) -> Outcome:
        ours, _ = self.compute_ours(case)
        findings: list[Finding] = []
        if ours is not None and abs(ours - score) > 1e-9:
            why = _explain_difference(score, rows, len(case.expected_calls))
            message = f"Arcade gives {score:.6g}, callgrade {ours:.6g}: {why}"
            findings.append(Finding("compat_differs", message, "/steps"))
        if rows and not passed and score >= case.matching.warn_threshold:
            findings.append(Finding("arcade_warning", f"Arcade warns: {score:.6g}", "/steps"))
        value, shown = min(1.0, max(0.0, score)), tuple([row.shown for row in rows])
        return MethodScore(value=value, passed=passed, findings=tuple(findings), raw=score, rows=shown)

    def read_plain(self, path: str, value: Template) -> JsonValue:
        """Return an expected value, a matcher's own. Raise InputError for a matcher inside a value."""
        return getattr(value, "value", None) if isinstance(value, Critic) else super().read_plain(path, value)

    def _list_critics(self, case: Case, expected: Iterable[Call]) -> Critics:
        """List Arcade's critics, one for each field; its `add_case` adds one that compares nothing for all other arguments."""
        critics = {name: (f"/rubric/critics/{escape_token(name)}", one) for name, one in self.critics.items()}
        weights = dict(self.weights)
        for path, pattern in published.list_patterns(case):
            args = {name: value for name, value in (pattern.args or {}).items() if isinstance(value, Critic)}
            critics |= {name: (f"{path}/args/{escape_token(name)}", one) for name, one in args.items()}
            weights |= pattern.weights
        shares = compute_shares({name: weights.get(name, 1.0) for name in critics})
        others = dict.fromkeys([name for _, args in expected for name in args if name not in critics], (None, 0.0))
        return {name: (require_critic(*critic), shares[name]) for name, critic in critics.items()} | others

    def _stops_at_gates(self, expected: Sequence[Call], actual: Sequence[Call]) -> bool:
        """Whether the case fails before any critic runs. The shorter list of names decides how many are compared."""
        names = zip(sorted(name for name, _ in expected), sorted(name for name, _ in actual), strict=False)
        wrong_quantity = self.fail_on_tool_call_quantity and len(expected) != len(actual)
        return wrong_quantity or (self.fail_on_tool_selection and any(fold_name(a) != fold_name(b) for a, b in names))

    def _compare_all(self, expected: Sequence[Call], actual: Sequence[Call], critics: Critics) -> list[Row]:
        """Return the rows of every assigned pair; a call without a counterpart has none, and so costs nothing.

        The gain of a pair, unlike its score, leaves out fields that either side lacks.
        """
        size, weight = max(len(expected), len(actual)), self.tool_selection_weight
        gains = [[0.0] * size for _ in range(size)]
        for i, (tool, wanted) in enumerate(expected):
            for j, (name, given) in enumerate(actual):
                gain = weight * (fold_name(tool) == fold_name(name))
                for field, (critic, share) in critics.items():
                    one, other = wanted.get(field), given.get(field)
                    compared = None if one is None or other is None else compare(critic, one, other, self.today)
                    gain += compared[1] * share if compared else 0.0
                gains[i][j] = gain
        pairs = [(i, j) for i, j in _assign(gains) if i < len(expected) and j < len(actual)]
        return [row for i, j in pairs for row in self._compare_pair(i, expected[i], actual[j], critics)]

    def _compare_pair(self, index: int, expected: Call, actual: Call, critics: Critics) -> Iterator[Row]:
        same, weight = fold_name(expected[0]) == fold_name(actual[0]), self.tool_selection_weight
        yield Row(CriticRow("tool_selection", same, weight * same, weight), index, expected[0], actual[0])
        for name, (critic, share) in critics.items():
            one, other = expected[1].get(name), actual[1].get(name)
            compared = compare(critic, one, other, self.today)
            match, value = compared or (False, 0.0)
            shown = CriticRow(name, match, value * share, share)
            yield Row(shown, index, one, other, critic, counted=compared is not None)


def _fill_defaults(call: Call, schemas: Mapping[str, object]) -> Call:
    """Return the call with its schema's defaults for arguments that are missing or null. A tool `a.b` is also found as `a_b`."""
    name, args = call
    tool = name if name in schemas else next((key for key in schemas if key.replace(".", "_") == name), "")
    declared = published.list_properties(schemas.get(tool))
    defaults = {key: one["default"] for key, one in declared.items() if isinstance(one, dict) and "default" in one}
    return name, {**args, **{key: value for key, value in defaults.items() if args.get(key) is None}}


def _assign(gains: list[list[float]]) -> list[tuple[int, int]]:
    """Return the assignment with the greatest gain, by scipy as upstream: its choice among equals can move the score."""
    if len(gains) == 1 and isfinite(gains[0][0]):
        return [(0, 0)]
    from scipy import optimize  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] (heavy, and most cases have one call)

    solve = cast("Callable[..., tuple[Iterable[int], Iterable[int]]]", optimize.linear_sum_assignment)
    rows, columns = solve(gains, maximize=True)
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True)]


def _explain_difference(score: float, rows: Sequence[Row], expected: int) -> str:
    if any(not row.counted for row in rows):
        return "a critic that raises drops its weight there, here it scores 0"
    if not 0.0 <= score <= 1.0 or any(row.shown.score < 0 for row in rows):
        return "a value outside the range is not clamped there"
    if len({row.expected_call for row in rows}) < expected:
        return "an expected call without a counterpart is left out there, here it scores 0"
    for row in rows:
        if row.shown.match and isinstance(row.critic, Exact) and not equals(row.expected, row.actual):
            values = f"{format_value(row.actual)} to the type of {format_value(row.expected)}"
            return f"its critic of {row.shown.name} casts {values}, here values keep their types"
    for row in rows:
        if isinstance(row.critic, DateTime):
            return f"its critic of {row.shown.name} reads dates as dateutil does, within 500 s unless it says otherwise"
    return "arguments that no critic names, or that neither side has, are counted otherwise"

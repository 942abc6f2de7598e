"""Arcade's way of scoring a case: tool selection and critics in one weighted number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum, isfinite
from typing import Annotated, ClassVar, Literal, cast

from pydantic import Field, JsonValue

from service.core.binding import Bound, bind
from service.core.budget import COST_OF_A_MATCHER, text_chars
from service.core.carried.arcade import Call, CaseResult, RubricSpec, score_case, with_placeholders
from service.core.carried.arcade_critics import CriticKind, CriticSpec
from service.core.case import Case, Pair, call_path
from service.core.checks import WHOLE, Aspect, Check, Seen
from service.core.critics import Critic, Match, Uncompared
from service.core.expect import CallPattern
from service.core.gates.arguments import standing_in
from service.core.gates.carrying import spend_on_pairs
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.quantity import QuantityGate
from service.core.gates.schema import unparsable
from service.core.gates.tool_name import named, settled, unmatched
from service.core.kinds import Tagged, kind_of
from service.core.likeness import MOST_A_CHARACTER_COSTS
from service.core.outcome import PERFECT, Carried, Errored, Finding, Outcome, Scored, Skipped, failed
from service.core.shapes import has_matcher
from service.core.trace import Step
from service.core.weights import Weight, shares, weight_of
from service.errors import InputError


class ArcadeGate(Check):
    """Tool selection and critics over the optimal alignment: (selection + weighted critics) / (their weights), for each pair.

    A missing call and an unexpected one are 0. Where no critic names an argument of the expected call, all its arguments
    are compared exactly, sharing a weight of 1. With `compat` in the rubric the number is Arcade's own, bugs included, and
    a finding says where it differs from ours. Source: ArcadeAI/arcade-mcp, `libs/arcade-evals`.
    """

    kind: Literal["arcade"] = "arcade"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "tools"})
    critics: dict[str, Annotated[Critic, Tagged()]] = Field(default={})
    """Critics by argument name; matchers in the expectation go before them."""
    weights: dict[str, Weight] = {}
    """Weights of critics by argument name, 1 where none is given; as soon as one is a name, all are divided by their sum."""
    tool_selection_weight: float = Field(default=1.0, ge=0)
    fail_on_tool_selection: bool = True
    """Whether a wrong tool makes the whole score 0."""
    fail_on_tool_call_quantity: bool = True
    """Whether a wrong number of calls makes the whole score 0."""

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for each pair, each missing call and each extra one; one for the trace where a gate closes."""
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        if case.matching.compat:
            return [(WHOLE, self._upstream(case))]
        closed = self._closed(case)
        if closed is not None:
            return [(WHOLE, closed)]
        return [*self._pairs(case), *unmatched(case)] or [(WHOLE, PERFECT)]

    def pair_value(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """The score this pair would get."""
        outcome = self._scored(case, pattern, step, PERFECT)
        return outcome.value if isinstance(outcome, Scored) else 0.0

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:
        """Whether no matcher compares."""
        return all(bound.critic is None for bound in self._bound_of(case, pattern, right_tool=True))

    def _closed(self, case: Case) -> Outcome | None:
        """The outcome where a gate closes."""
        if self.fail_on_tool_call_quantity:
            for _, outcome in QuantityGate().look(case):
                if isinstance(outcome, Scored) and not outcome.passed:
                    return outcome
        if not self.fail_on_tool_selection:
            return None
        chosen = [named(case, pair) for pair in case.alignment.pairs]
        wrong = [finding for outcome in chosen for finding in outcome.findings]
        return failed(0.0, *wrong) if wrong else None

    def _pairs(self, case: Case) -> Iterable[Seen]:
        for pair in case.alignment.pairs:
            yield case.subjects[pair.step], settled(case, pair, self._paired(case, pair))

    def _paired(self, case: Case, pair: Pair) -> Outcome:
        return self._scored(case, pair.pattern, case.trace.steps[pair.step], named(case, pair))

    def _scored(self, case: Case, pattern: CallPattern, step: Step, selection: Scored) -> Outcome:
        if step.call.arguments is None and pattern.args is not None:
            return failed(0.0, *selection.findings, unparsable(step))
        bound = self._bound_of(case, pattern, right_tool=selection.passed)
        schema = case.schema_of(step)
        defaults = standing_in(schema, bound) if schema else {}
        actual = {**defaults, **(step.call.arguments or {})}
        results = [(b, b.match(actual[b.name]) if b.name in actual else _absent(b)) for b in bound]
        return self._weighed(selection, results, step)

    def _bound_of(self, case: Case, pattern: CallPattern, *, right_tool: bool) -> list[Bound]:
        return case.once((id(self), id(pattern), right_tool), lambda: self._bound(pattern, right_tool))

    def _bound(self, pattern: CallPattern, right_tool: bool) -> list[Bound]:  # noqa: FBT001
        args = dict(sorted((pattern.args or {}).items()))
        named_critics = {name for name, value in args.items() if has_matcher(value)} | self.critics.keys()
        criticised = [name for name in args if name in named_critics]
        if not criticised:
            return (
                [Bound(n, cast("JsonValue", v), None, 1.0 / len(args)) for n, v in args.items()] if right_tool else []
            )
        weights = self._shares(pattern, criticised)
        return [bind(name, args[name], critics=self.critics, weight=weights[name]) for name in criticised]

    def _shares(self, pattern: CallPattern, names: Iterable[str]) -> dict[str, float]:
        given: dict[str, Weight] = {**self.weights, **pattern.weights}
        return shares({name: given.get(name, 1.0) for name in names})

    def _weighed(self, selection: Scored, results: list[tuple[Bound, Match | Uncompared]], step: Step) -> Outcome:
        for bound, match in results:
            if isinstance(match, Uncompared):
                return Skipped(match.cause, f"{bound.name}: {match.reason}")
        matches = [(bound, match) for bound, match in results if isinstance(match, Match)]
        total = fsum([self.tool_selection_weight, *(bound.weight for bound, _ in matches)])
        gained = fsum([self.tool_selection_weight * selection.value, *(b.weight * m.value for b, m in matches)])
        path = f"{call_path(step)}/arguments"
        findings = [
            Finding("wrong_argument", f"{b.name}: {m.note}", f"{path}/{b.name}") for b, m in matches if not m.passed
        ]
        if not findings and selection.passed:
            return PERFECT
        value = min(1.0, gained / total) if total else 0.0
        return Scored(value, False, (*selection.findings, *findings))

    def _upstream(self, case: Case) -> Outcome:
        """Arcade's own number, clamped, with the raw one beside it."""
        expected = [(pattern.tool, _plain_args(pattern)) for pattern in _patterns(case)]
        actual = [(step.call.name, step.call.arguments or {}) for step in case.trace.steps]
        critics = with_placeholders(expected, self._specs(case))
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
        return Carried(value=value, passed=result.passed, findings=self._differences(case, result), raw=result.score)

    def _specs(self, case: Case) -> list[CriticSpec]:
        """Arcade's critics for ours: rubric and expectation together, one for a field."""
        critics: dict[str, Critic] = dict(self.critics)
        weights = dict(self.weights)
        for pattern in _patterns(case):
            critics |= {name: value for name, value in (pattern.args or {}).items() if isinstance(value, Critic)}
            weights |= pattern.weights
        return [_spec(name, critic, weights.get(name, 1.0)) for name, critic in critics.items()]

    def _differences(self, case: Case, result: CaseResult) -> tuple[Finding, ...]:
        ours = self._ours(case)
        if ours is None or abs(ours - result.score) <= 1e-9:
            return ()
        message = f"Arcade gives {result.score:.6g}, callgrade {ours:.6g}: {_reason(result, len(case.wanted))}"
        return (Finding("compat_differs", message, "/steps"),)

    def _ours(self, case: Case) -> float | None:
        strict = Case(case.trace, case.expectation, case.matching.strict())
        values = [outcome.value for _, outcome in self.look(strict) if isinstance(outcome, Scored)]
        return fsum(values) / len(values) if values else None


def _patterns(case: Case) -> list[CallPattern]:
    return [wanted.options[0][1] for wanted in case.wanted]


def _absent(bound: Bound) -> Match:
    return Match(1.0, True) if bound.optional else Match(0.0, False, "missing")


def _spend_on_texts(case: Case, expected: Sequence[Call], actual: Sequence[Call]) -> None:
    """Counts the characters that are read where every pair is compared."""
    asked, given = text_chars([args for _, args in expected]), text_chars([args for _, args in actual])
    case.meter.spend("characters", MOST_A_CHARACTER_COSTS * (asked * len(actual) + given * len(expected)))


def _plain_args(pattern: CallPattern) -> dict[str, JsonValue]:
    """The expected arguments with each matcher's own value in its place."""
    args = pattern.args or {}
    return {
        name: getattr(v, "value", None) if isinstance(v, Critic) else cast("JsonValue", v) for name, v in args.items()
    }


_KINDS: Mapping[str, CriticKind] = {
    "exact": "binary",
    "numeric": "numeric",
    "similar": "similarity",
    "datetime": "datetime",
}


def _spec(name: str, critic: Critic, weight: Weight) -> CriticSpec:
    name_of_kind = kind_of(type(critic)) or ""
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
        name, kind, weight_of(weight) if not isinstance(weight, str) else weight, low=low, high=high, **given
    )


def _reason(result: CaseResult, expected: int) -> str:
    """Which of Arcade's ways made the difference."""
    if any(not row.counted for row in result.rows):
        return "a critic that raises drops its weight there, here it scores 0"
    if not 0.0 <= result.score <= 1.0 or any(row.score < 0 for row in result.rows):
        return "a value outside the range is not clamped there"
    if len({row.pair[0] for row in result.rows}) < expected:
        return "an expected call without a counterpart is left out there, here it scores 0"
    return "arguments that no critic names, or that neither side has, are counted otherwise"

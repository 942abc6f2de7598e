"""Step 3 of the contract, the content: are the arguments the expected ones?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from service.core.binding import Bound, bind
from service.core.checks import WHOLE, Case, Check, Seen, at_step, call_path
from service.core.critics import Critic, Match, Uncompared
from service.core.expect import CallPattern, ExtraArguments
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.schema import unparsable
from service.core.gates.tool_name import named, unmatched
from service.core.kinds import Tagged
from service.core.outcome import PERFECT, Finding, Outcome, Scored, Skipped, failed
from service.core.pointers import escaped
from service.core.schemas import SchemaProblem, Validator, validator
from service.core.trace import Step
from service.core.values import equal
from service.core.weights import Weight, weight_of

ANY_ARGUMENTS = Skipped("not_applicable", "the expectation leaves the arguments free")


@dataclass(frozen=True, slots=True)
class Compared:
    """One argument after comparison. A finding says what is wrong; `match` is None where a cap forbade comparing."""

    weight: float
    match: Match | Uncompared
    code: str
    name: str

    def finding(self, step: Step) -> Finding:
        """What is wrong with this argument, and where."""
        note = self.match.note if isinstance(self.match, Match) else self.match.reason
        return Finding(self.code, f"{self.name}: {note}", f"{call_path(step)}/arguments/{escaped(self.name)}")


class ArgumentsGate(Check):
    """Critics by argument over the optimal alignment: the weighted mean of the arguments' scores for each pair.

    A missing call and an unexpected one are 0; a matcher in the expectation goes before the rubric's critic for that
    argument, and what neither names is compared exactly. An extra argument counts as one that scored 0, unless the rubric
    says otherwise or the tool's schema requires it. Findings: `missing_argument`, `wrong_argument`, `extra_argument`.
    """

    kind: Literal["arguments"] = "arguments"
    critics: dict[str, Annotated[Critic, Tagged()]] = Field(default={})
    """Critics by argument: a name (`amount`) or a JSON pointer (`/filter/price`)."""
    weights: dict[str, Weight] = {}
    """Weights by argument name. Unlisted: 1, or `medium` where any weight is given by name."""
    extra: ExtraArguments = "count"
    """What an argument does that the expectation does not list."""
    fill_defaults: bool = True
    """Whether a default of the tool's schema stands in for an absent (not a null) argument, on both sides."""

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for each pair, each missing call, and each extra one that is not free."""
        expected = case.expectation
        if expected is None or not (case.patterns or expected.no_calls):
            yield WHOLE, NOTHING_EXPECTED
            return
        if not case.patterns and not case.trace.steps:
            yield WHOLE, Skipped("not_applicable", "no call was due and none was made")
        for i, j in case.alignment.pairs:
            step = case.trace.steps[j]
            yield at_step(step), self._paired(case, case.patterns[i][1], step)
        yield from unmatched(case)

    def pair_value(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """The score this pair would get."""
        if pattern.args is None:
            return 1.0
        if step.call.arguments is None:
            return 0.0
        outcome = self._folded(self._compare(case, pattern, step, step.call.arguments), step)
        return outcome.value if isinstance(outcome, Scored) else 0.0

    def _paired(self, case: Case, pattern: CallPattern, step: Step) -> Outcome:
        right_tool = named(case, pattern, step)
        if not right_tool.passed:
            return right_tool
        if pattern.args is None:
            return ANY_ARGUMENTS
        if step.call.arguments is None:
            return failed(0.0, unparsable(step))
        return self._folded(self._compare(case, pattern, step, step.call.arguments), step)

    def _folded(self, compared: list[Compared], step: Step) -> Outcome:
        for one in compared:
            if isinstance(one.match, Uncompared):
                return Skipped("too_long", f"{one.name}: {one.match.reason}")
        wrong = [one for one in compared if not (isinstance(one.match, Match) and one.match.passed)]
        if not wrong:
            return PERFECT
        forbidden = self.extra == "forbid" and any(one.code == "extra_argument" for one in wrong)
        value = 0.0 if forbidden else _weighted(compared)
        return Scored(value, False, tuple(one.finding(step) for one in wrong))

    def _compare(
        self, case: Case, pattern: CallPattern, step: Step, actual: Mapping[str, JsonValue]
    ) -> list[Compared]:
        bound = case.once((id(self), id(pattern)), lambda: self._bound(pattern))
        schema = schema_of(case, step)
        if schema is not None and self.fill_defaults and schema.defaults:
            actual = {**schema.defaults, **actual}
        compared = [_compare_one(b, actual) for b in bound.values()]
        compared = [one for one in compared if one is not None]
        if self.extra != "allow" and len(actual) > len(compared):
            compared += self._extras(bound, actual, schema, pattern)
        return compared

    def _bound(self, pattern: CallPattern) -> dict[str, Bound]:
        weights = {**self.weights, **pattern.weights}
        usual = _usual(weights)
        return {
            name: bind(name, value, critics=self.critics, weight=weight_of(weights.get(name, usual)))
            for name, value in (pattern.args or {}).items()
        }

    def _extras(
        self,
        bound: Mapping[str, Bound],
        actual: Mapping[str, JsonValue],
        schema: Validator | None,
        pattern: CallPattern,
    ) -> list[Compared]:
        """Arguments nobody asked for; one the schema requires, or that holds its default, is none."""
        needed = schema.required if schema else frozenset[str]()
        usual = weight_of(_usual({**self.weights, **pattern.weights}))
        return [
            Compared(usual, _EXTRA, "extra_argument", name)
            for name in actual
            if name not in bound and name not in needed and not _is_default(schema, name, actual[name])
        ]


_EXTRA = Match(0.0, False, "not expected")
_MISSING = Match(0.0, False, "missing")


def _usual(weights: Mapping[str, Weight]) -> Weight:
    return "medium" if any(isinstance(w, str) for w in weights.values()) else 1.0


def _weighted(compared: list[Compared]) -> float:
    total = fsum(one.weight for one in compared)
    if total <= 0.0:
        return 1.0
    value = fsum(one.weight * one.match.value for one in compared if isinstance(one.match, Match)) / total
    return min(1.0, value)


def _compare_one(bound: Bound, actual: Mapping[str, JsonValue]) -> Compared | None:
    """The comparison of one expected argument; None where it may be absent and is."""
    if bound.name in actual:
        return Compared(bound.weight, bound.match(actual[bound.name]), "wrong_argument", bound.name)
    if bound.optional:
        return None
    return Compared(bound.weight, _MISSING, "missing_argument", bound.name)


def _is_default(schema: Validator | None, name: str, value: JsonValue) -> bool:
    return schema is not None and name in schema.defaults and equal(schema.defaults[name], value)


def schema_of(case: Case, step: Step) -> Validator | None:
    """The compiled schema of the step's tool, where there is one that compiles."""
    tool = case.catalogue.get(step.call.name)
    if tool is None or tool.parameters is None:
        return None
    try:
        return validator(tool.parameters)
    except SchemaProblem:
        return None

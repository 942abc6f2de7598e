"""Score calls by Future AGI's function-calling metrics.

Source: future-agi/ai-evaluation, `python/fi/evals/metrics/function_calling/metrics.py` (1.1.0). With `compat`, the same metrics
run by their rules: arguments that are no JSON object count as {}, no call expected and none made scores 0, one call may stand for
several expected ones, numbers are compared as floats, three of the four metrics know only a single call, and all scores are
rounded to four places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import fsum
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.alignment.binding import BoundArgument
from service.core.case import Case, Pair, build_call_path
from service.core.checks import WHOLE, Aspect, SubjectOutcome
from service.core.critics import Exact, Match, OpenComparison
from service.core.expectations.expectation import CallPattern
from service.core.expectations.templates import has_matcher
from service.core.gates import published
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.schema import NO_TOOLS, SchemaGate, build_unparsable, explain_gap
from service.core.gates.tool_name import score_missing, score_name, score_pairs, score_unmatched
from service.core.json.members import list_elements
from service.core.json.pointers import split_pointer
from service.core.json.values import equals
from service.core.outcome import PERFECT, Finding, Outcome, Scored, Skipped, build_failure
from service.core.trace import Step

NAME, PRESENCE, VALUE = 0.4, 0.3, 0.3
"""The weights of the name, and of the presence and the values of the arguments, in a call's accuracy."""
CLOSING = frozenset({"schema_additionalProperties", "schema_unevaluatedProperties", "undeclared_argument"})
"""The findings against a parameter that is not declared."""

ONE_CALL = "it validates one call, knows only plain types and enums, and reads broken arguments as {}"
SEVERAL_CALLS = (
    "no call is 0 there, several calls are 0 or may share one call, extra arguments and calls are mostly free, "
    "broken arguments are {}"
)

Call = tuple[str, Mapping[str, JsonValue]]
"""A function's name and its arguments."""


class FutureAgiGate(published.PublishedCheck):
    """Score calls, paired one to one, by one of Future AGI's function-calling metrics.

    `function_name_match`: whether the tool is the expected one. `parameter_validation`: the share of a call's parameters,
    declared or given, to which the tool's JSON Schema does not object; needs no expectation. `function_call_accuracy`: 0.4 for
    the name, 0.3 for the share of arguments (expected or given) that both sides have, 0.3 for the share that is right; among
    several calls, a call of a wrong tool scores 0. `function_call_exact_match`: 1.0 if all calls are the expected ones, else
    0.0. No call expected and none made is 1.0; a missing call and an unexpected one score 0. With `compat` in the rubric, the
    score is Future AGI's own number. Findings: `wrong_tool`, `missing_call`, `extra_call`, `missing_argument`,
    `wrong_argument`, `extra_argument`, `unparsable_arguments`, `unknown_tool`, `schema_<keyword>`. Source:
    future-agi/ai-evaluation, `metrics/function_calling`.
    """

    kind: Literal["future_agi"] = "future_agi"
    system: ClassVar[str] = "Future AGI"
    places: ClassVar[int | None] = 4
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "tools"})
    metric: Literal[
        "function_name_match", "parameter_validation", "function_call_accuracy", "function_call_exact_match"
    ]
    strict_type_check: bool = False
    """Whether 1 and 1.0 differ."""
    ignore_extra_params: bool = False
    """Whether arguments beyond the expected or declared ones are allowed."""
    order_matters: bool = False
    """Whether the first call is compared with the first expected one, and so on."""

    def aspects(self) -> frozenset[Aspect]:
        """Return the aspects that the metric reads: all, without arguments for name match, none for validation."""
        if self.metric == "parameter_validation":
            return frozenset()
        return self.reads - {"args"} if self.metric == "function_name_match" else self.reads

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each pair, missing call and extra call; one for the trace for exact match and with `compat`."""
        validating = self.metric == "parameter_validation"
        if not validating and not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        if case.matching.compat:
            why = ONE_CALL if validating else SEVERAL_CALLS
            return self.give_own_number(case, self._compute_theirs(case), why)
        if validating:
            validations = [(case.subjects[step.index], self._validate(case, step)) for step in case.trace.steps]
            return validations or [(WHOLE, Skipped("not_applicable", "no call was made"))]
        outcomes = published.add_idle_outcomes(self._score_calls(case), case)
        return published.fold_all_or_nothing(outcomes) if self.metric == "function_call_exact_match" else outcomes

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """Return the accuracy of this pair."""
        outcome = self._score_accuracy(case, pattern, step, PERFECT)
        return outcome.value if isinstance(outcome, Scored) else 0.0

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:  # noqa: ARG002
        """Whether arguments are compared by equality alone, with no matcher and no strict types."""
        return pattern.args is None or not (self.strict_type_check or has_matcher(pattern.args))

    def _score_calls(self, case: Case) -> Iterable[SubjectOutcome]:
        if not self.order_matters:
            return [*score_pairs(case, lambda pair: self._score_pair(case, pair)), *score_unmatched(case)]
        expected, steps = case.expected_calls, case.trace.steps
        pairs = [Pair(n, n, *one.options[0]) for n, one in enumerate(expected[: len(steps)])]
        outcomes = [(case.subjects[pair.step], self._score_pair(case, pair)) for pair in pairs]
        missing = [score_missing(case, n) for n in range(len(steps), len(expected)) if expected[n].required]
        extra = [(case.subjects[step.index], case.score_unexpected(step)) for step in steps[len(expected) :]]
        return [*outcomes, *missing, *[(subject, outcome) for subject, outcome in extra if outcome is not None]]

    def _score_pair(self, case: Case, pair: Pair) -> Outcome:
        name, alone = score_name(case, pair), len(case.expected_calls) == len(case.trace.steps) == 1
        if self.metric == "function_name_match" or not (name.passed or alone):
            return name  # among several calls, a wrong tool earns nothing: else any call would be better than none
        return self._score_accuracy(case, pair.pattern, case.trace.steps[pair.step], name)

    def _score_accuracy(self, case: Case, pattern: CallPattern, step: Step, name: Scored) -> Outcome:
        """Score a call: 0.4 for the name, 0.3 for the arguments that both sides have, 0.3 for those that are right."""
        actual = step.call.arguments
        if pattern.args is None or actual is None:
            if pattern.args is not None and name.passed and not step.call.captured:
                return explain_gap(step)
            findings = [] if pattern.args is None else [build_unparsable(step)]
            return self._weigh(name, float(not findings), float(not findings), findings)
        found: list[tuple[str, Match]] = []
        for one, match in published.match_arguments(case, pattern, actual):
            if isinstance(match, OpenComparison):
                return Skipped(match.cause, match.reason)
            right_type = not match.passed or self._has_type(one, actual[one.name])
            found.append((one.name, match if right_type else Match(0.0, False, "the type differs")))
        allowed = self.ignore_extra_params if pattern.extra_args is None else pattern.extra_args == "allow"
        extra = [] if allowed else [name for name in actual if name not in pattern.args]
        findings = [published.note_argument(step, name, match) for name, match in found if not match.passed]
        findings.sort(key=lambda finding: finding.code != "missing_argument")
        findings += [published.note_argument(step, name) for name in extra]
        total, present = len(found) + len(extra), sum([match is not published.MISSING for _, match in found])
        right = fsum([match.value for _, match in found])
        return self._weigh(name, present / total if total else 1.0, right / total if total else 1.0, findings)

    def _has_type(self, one: BoundArgument, value: JsonValue) -> bool:
        """Whether the types are right where they matter: of a value expected as it is or, as in gold, as `exact`."""
        if not self.strict_type_check or not (one.critic is None or isinstance(one.critic, Exact)):
            return True
        return is_same_value(value, one.expected if one.critic is None else one.critic.value, strict=True)

    def _weigh(self, name: Scored, presence: float, right: float, findings: list[Finding]) -> Outcome:
        if name.passed and not findings:
            return PERFECT
        return build_failure(min(1.0, fsum(weigh(name.value, presence, right))), *name.findings, *findings)

    def _validate(self, case: Case, step: Step) -> Outcome:
        """Score the share of parameters to which the tool's schema does not object."""
        tool, arguments = case.find_offered_tool(step), step.call.arguments
        if case.trace.tools is None:
            return NO_TOOLS
        if tool is not None and tool.parameters is None and arguments is not None:
            return Skipped("not_applicable", f"{tool.name} declares no parameters schema")
        outcome = SchemaGate().score_step(case, step)
        if tool is None or arguments is None or not isinstance(outcome, Scored):
            return outcome
        wrong: dict[str, Finding] = {}
        for finding in outcome.findings:
            below = split_pointer(finding.path.removeprefix(f"{build_call_path(step)}/arguments"))
            if finding.code not in CLOSING or len(below) != 1 or not self.ignore_extra_params:
                # A violation of the whole object counts as a parameter of its own, under its message.
                code = "extra_argument" if finding.code == "undeclared_argument" else finding.code
                wrong.setdefault(next(iter(below), finding.message), replace(finding, code=code))
        if not wrong:
            return PERFECT
        declared = published.list_properties(tool.parameters)
        counted = {*declared, *wrong, *(() if self.ignore_extra_params else arguments)}
        return build_failure((len(counted) - len(wrong)) / len(counted), *wrong.values())

    def _compute_theirs(self, case: Case) -> float:
        made: list[Call] = [(step.call.name, step.call.arguments or {}) for step in case.trace.steps]
        if self.metric == "parameter_validation":
            schemas = {tool.name: tool.parameters for tool in case.trace.tools or ()}
            known = len(made) == 1 and made[0][0] in schemas
            return self._validate_theirs(made[0][1], schemas[made[0][0]]) if known else 0.0
        expected: list[Call] = [*self.list_plain_calls(case)]
        single = len(made) == len(expected) == 1
        if self.metric == "function_name_match":
            return float(single and made[0][0] == expected[0][0])
        if self.metric == "function_call_exact_match":
            closed = single and (self.ignore_extra_params or made[0][1].keys() <= expected[0][1].keys())
            return float(closed and self._weigh_theirs(made[0], expected[0]) == 1.0)
        published.spend_on_pairs(case, each=12)
        if not made or not expected or (self.order_matters and len(made) != len(expected)):
            return 0.0
        scores = [[round(self._weigh_theirs(call, one), 4) for call in made] for one in expected]
        if self.order_matters:
            return round(sum([scores[n][n] for n in range(len(made))]) / len(made), 4)
        best = [max(row) for row in scores if max(row) > 0]
        return round(len(best) / len(expected) * (sum(best) / len(best)), 4) if best else 0.0

    def _weigh_theirs(self, made: Call, expected: Call) -> float:
        actual, due = made[1], expected[1]
        present = [name for name in due if name in actual]
        right = [name for name in present if is_same_value(actual[name], due[name], strict=self.strict_type_check)]
        presence = len(present) / len(due) if due else float(not actual or self.ignore_extra_params)
        return sum(weigh(made[0] == expected[0], presence, len(right) / len(due) if due else 1.0))

    def _validate_theirs(self, arguments: Mapping[str, JsonValue], schema: object) -> float:
        """Return the share of the parameters, declared or given, that are right; an absent optional one is right."""
        declared = published.list_properties(schema)
        required = list_elements(published.get_mapping(schema).get("required"))

        def is_valid(name: str, spec: JsonValue) -> bool:
            if name not in arguments:
                return name not in required
            value, kind = arguments[name], str(published.get_mapping(spec).get("type", "")).lower()
            enum = list_elements(published.get_mapping(spec).get("enum"))
            types = int if self.strict_type_check and kind == "integer" else _TYPES.get(kind, str)
            typed = kind == "boolean" if isinstance(value, bool) else isinstance(value, types)
            return typed and (not enum or value in enum)

        total = len(declared) + (0 if self.ignore_extra_params else len(arguments.keys() - declared.keys()))
        return round(sum([is_valid(*one) for one in declared.items()]) / total, 4) if total else 1.0


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "integer": (int, float),
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}
"""What Future AGI takes for a type; any other name means a string."""


def weigh(name: float, presence: float, right: float) -> tuple[float, float, float]:
    """Return the three parts of a call's accuracy: its name, and the shares of arguments that are present and right."""
    return NAME * name, PRESENCE * presence, VALUE * right


def is_same_value(made: JsonValue, expected: JsonValue, *, strict: bool = False) -> bool:
    """Compare as Future AGI does: numbers as floats, a boolean is not a number; if `strict`, 1 is not 1.0.

    >>> is_same_value(2**53 + 1, 2.0**53), is_same_value(True, 1), is_same_value([1], [1.0], strict=True)
    (True, False, False)
    """
    if isinstance(made, str) or isinstance(expected, str):
        return made == expected
    return equals(published.make_floats(made, tag=strict), published.make_floats(expected, tag=strict))

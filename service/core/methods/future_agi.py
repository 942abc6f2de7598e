"""Score calls by Future AGI's function-calling metrics.

`service.core.methods.future_agi_number` computes Future AGI's own numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import fsum
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.alignment.binding import BoundArgument
from service.core.case import Alignment, Case, Pair, build_call_path
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.critics import Exact, Match, OpenComparison
from service.core.expectations.expectation import CallPattern
from service.core.expectations.templates import has_matcher
from service.core.gates.compat import (
    add_idle_outcomes,
    bind_arguments,
    build_method_score,
    fold_all_or_nothing,
    read_plain_args,
    spend_on_pairs,
)
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.schema import ARGUMENTS_NOT_CAPTURED, build_unknown_tool, build_unparsable, score_unread
from service.core.gates.tool_name import score_missing, score_name, settle_pair
from service.core.json.pointers import escape_token, split_pointer
from service.core.methods.future_agi_number import (
    NAME,
    PRESENCE,
    VALUE,
    Options,
    compute_accuracy,
    is_same_value,
    match_exactly,
    match_name,
    read_parameters,
    validate_parameters,
)
from service.core.outcome import PERFECT, Errored, Finding, Outcome, Scored, Skipped, build_failure
from service.core.schemas import SchemaProblem
from service.core.trace import Step, ToolDef

Metric = Literal["function_name_match", "parameter_validation", "function_call_accuracy", "function_call_exact_match"]


class FutureAgiGate(Check):
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
    has_own_number: ClassVar[bool] = True
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "tools"})
    metric: Metric
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
            return [(WHOLE, self._score_upstream(case))]
        if validating:
            validations = ((case.subjects[step.index], self._validate(case, step)) for step in case.trace.steps)
            return validations if case.trace.steps else [(WHOLE, Skipped("not_applicable", "no call was made"))]
        outcomes = add_idle_outcomes(self._score_calls(case), case)
        return fold_all_or_nothing(outcomes) if self.metric == "function_call_exact_match" else outcomes

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """Return the accuracy of this pair."""
        outcome = self._score_accuracy(case, pattern, step, PERFECT)
        return outcome.value if isinstance(outcome, Scored) else 0.0

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:  # noqa: ARG002
        """Whether arguments are compared by equality alone, with no matcher and no strict types."""
        return pattern.args is None or not (self.strict_type_check or has_matcher(pattern.args))

    def _score_calls(self, case: Case) -> Iterable[SubjectOutcome]:
        steps = case.trace.steps
        alignment = _pair_in_sequence(case) if self.order_matters else case.alignment
        for pair in alignment.pairs:
            score = self._score_pair(case, pair)
            yield case.subjects[pair.step], score if self.order_matters else settle_pair(case, pair, score)
        for i in alignment.missing:
            yield score_missing(case, i)
        for j in alignment.extra:
            outcome = case.score_unexpected(steps[j])
            if outcome is not None:
                yield case.subjects[j], outcome

    def _score_pair(self, case: Case, pair: Pair) -> Outcome:
        name = score_name(case, pair)
        alone = len(case.expected_calls) == len(case.trace.steps) == 1
        if self.metric == "function_name_match" or not (name.passed or alone):
            return (
                name  # among several calls, one of a wrong tool earns nothing: else any call would be better than none
            )
        return self._score_accuracy(case, pair.pattern, case.trace.steps[pair.step], name)

    def _score_accuracy(self, case: Case, pattern: CallPattern, step: Step, name: Scored) -> Outcome:
        """Score a call: 0.4 for the name, 0.3 for the arguments that both sides have, 0.3 for those that are right."""
        if pattern.args is None:
            return self._weigh(name, 1.0, 1.0, [])
        actual = step.call.arguments
        if actual is None and not step.call.captured and name.passed:
            return ARGUMENTS_NOT_CAPTURED
        if actual is None:
            return self._weigh(name, 0.0, 0.0, [build_unparsable(step)])
        bound = bind_arguments(case, pattern)
        due = [one for one in bound if not one.optional or one.name in actual]
        comparisons = {one.name: self._match(one, actual[one.name]) for one in due if one.name in actual}
        for match in comparisons.values():
            if isinstance(match, OpenComparison):
                return Skipped(match.cause, match.reason)
        matches = {key: match for key, match in comparisons.items() if isinstance(match, Match)}
        extra = [] if self._ignores_extra(pattern) else [key for key in actual if key not in pattern.args]
        total = len(due) + len(extra)
        presence = len(matches) / total if total else 1.0
        right = fsum(match.value for match in matches.values()) / total if total else 1.0
        absent = [one.name for one in due if one.name not in actual]
        return self._weigh(name, presence, right, list(_build_argument_findings(step, matches, absent, extra)))

    def _ignores_extra(self, pattern: CallPattern) -> bool:
        return self.ignore_extra_params if pattern.extra_args is None else pattern.extra_args == "allow"

    def _match(self, bound: BoundArgument, value: JsonValue) -> Match | OpenComparison:
        match = bound.match(value)
        has_type = self._has_type(bound, value)
        if isinstance(match, Match) and match.passed and not has_type:
            return Match(0.0, False, "the type differs")
        return match

    def _has_type(self, bound: BoundArgument, value: JsonValue) -> bool:
        """Whether the value has the types of the expected value, where types matter; gold gives its values as `exact`."""
        if not self.strict_type_check or (bound.critic is not None and not isinstance(bound.critic, Exact)):
            return True
        expected = bound.critic.value if isinstance(bound.critic, Exact) else bound.expected
        return is_same_value(value, expected, strict=True)

    def _weigh(self, name: Scored, presence: float, right: float, findings: list[Finding]) -> Outcome:
        if name.passed and not findings:
            return PERFECT
        parts = (NAME * name.value, PRESENCE * presence, VALUE * right)
        return build_failure(min(1.0, fsum(parts)), *name.findings, *findings)

    def _validate(self, case: Case, step: Step) -> Outcome:
        """Score the share of parameters to which the tool's schema does not object."""
        if case.trace.tools is None:
            return Skipped("not_captured", "the trace does not say which tools were on offer")
        tool, arguments = case.find_offered_tool(step), step.call.arguments
        if tool is None:
            return build_failure(0.0, build_unknown_tool(case, step))
        if arguments is None:
            return score_unread(step)
        if tool.parameters is None:
            return Skipped("not_applicable", f"{tool.name} declares no parameters schema")
        try:
            return self._validate_parameters(case, tool, step, arguments)
        except SchemaProblem as problem:
            return Errored("invalid_schema", f"the schema of {tool.name} cannot be used: {problem}")

    def _validate_parameters(
        self, case: Case, tool: ToolDef, step: Step, arguments: Mapping[str, JsonValue]
    ) -> Outcome:
        schema = case.compile_schema(tool)
        path = f"{build_call_path(step)}/arguments"
        wrong: dict[str, Finding] = {}
        violations = schema.list_violations(arguments, case.meter)
        for violation in violations:
            # A violation of the whole object counts as a parameter of its own, under its message.
            name = next(iter(split_pointer(violation.path)), violation.message)
            if self.ignore_extra_params and violation.keyword in CLOSING_KEYWORDS and violation.path.count("/") == 1:
                continue
            wrong.setdefault(name, Finding(f"schema_{violation.keyword}", violation.message, path + violation.path))
        for name in () if self.ignore_extra_params else schema.find_undeclared(arguments):
            message = f"{name} is no parameter of {tool.name}"
            wrong.setdefault(name, Finding("extra_argument", message, f"{path}/{escape_token(name)}"))
        if not wrong:
            return PERFECT
        declared = _list_declared(tool)
        counted = declared | set(wrong) if self.ignore_extra_params else declared | set(wrong) | set(arguments)
        total = len(counted)
        return build_failure((total - len(wrong)) / total, *wrong.values())

    def _score_upstream(self, case: Case) -> Outcome:
        options = Options(self.strict_type_check, self.ignore_extra_params, self.order_matters)
        calls = [(step.call.name, step.call.arguments or {}) for step in case.trace.steps]
        if self.metric == "parameter_validation":
            declared = {t.name: read_parameters(_get_schema(t)) for t in case.trace.tools or ()}
            raw = validate_parameters(calls, declared, options)
            return build_method_score(self, case, raw, system="Future AGI", why=SIMPLE_TYPES, places=4)
        patterns = [expected_call.options[0] for expected_call in case.expected_calls]
        expected = [(pattern.tool, read_plain_args(path, pattern, "Future AGI")) for path, pattern in patterns]
        if self.metric == "function_name_match":
            raw = match_name(calls, expected)
        elif self.metric == "function_call_accuracy":
            spend_on_pairs(case, each=12)
            raw = compute_accuracy(calls, expected, options)
        else:
            raw = match_exactly(calls, expected, options)
        return build_method_score(self, case, raw, system="Future AGI", why=ONE_CALL, places=4)


CLOSING_KEYWORDS = frozenset({"additionalProperties", "unevaluatedProperties"})
"""The schema keywords that forbid further parameters."""

SIMPLE_TYPES = "it validates one call, knows only plain types and enums, and reads broken arguments as {}"
ONE_CALL = (
    "no call is 0 there, several calls are 0 or may share one call, extra arguments and calls are mostly free, "
    "broken arguments are {}"
)


def _build_argument_findings(
    step: Step, matches: Mapping[str, Match], absent: Iterable[str], extra: Iterable[str]
) -> Iterable[Finding]:
    path = f"{build_call_path(step)}/arguments"
    for name in absent:
        yield Finding("missing_argument", f"{name}: missing", f"{path}/{escape_token(name)}")
    for name, match in matches.items():
        if not match.passed:
            yield Finding("wrong_argument", f"{name}: {match.note}", f"{path}/{escape_token(name)}")
    for name in extra:
        yield Finding("extra_argument", f"{name}: not expected", f"{path}/{escape_token(name)}")


def _pair_in_sequence(case: Case) -> Alignment:
    """Pair the first expected call with the first actual call, and so on."""
    expected_calls, steps = case.expected_calls, case.trace.steps
    both = range(min(len(expected_calls), len(steps)))
    return Alignment(
        pairs=tuple([Pair(n, n, *expected_calls[n].options[0]) for n in both]),
        missing=tuple([n for n in range(len(steps), len(expected_calls)) if expected_calls[n].required]),
        extra=tuple(range(len(expected_calls), len(steps))),
    )


def _get_schema(tool: ToolDef) -> Mapping[str, JsonValue]:
    return tool.parameters if isinstance(tool.parameters, Mapping) else {}


def _list_declared(tool: ToolDef) -> set[str]:
    properties = _get_schema(tool).get("properties")
    return set(properties) if isinstance(properties, Mapping) else set()

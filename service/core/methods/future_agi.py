"""Future AGI's function-calling metrics.

Their own number stands at the end.
Source: future-agi/ai-evaluation, `python/fi/evals/metrics/function_calling/metrics.py` (1.1.0). Arguments that are no JSON
object count as {}, so two broken calls match exactly; no call expected and none made scores 0; one call may stand for several
expected ones; three of the four metrics know a single call only and score a list of calls 0. Scores lie in [0, 1], rounded
to four places.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.alignment.binding import BoundArgument
from service.core.case import Alignment, Case, Pair, build_call_path
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.critics import Match, OpenComparison
from service.core.expectation import CallPattern
from service.core.gates.compat import (
    add_idle,
    bind_arguments,
    build_method_score,
    fold_all_or_nothing,
    read_plain_args,
    spend_on_pairs,
)
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.schema import NOT_TOLD, build_unknown_tool, build_unparsable, score_unread
from service.core.gates.tool_name import score_missing, score_name, settle_pair
from service.core.json.pointers import escape_token, split_pointer
from service.core.outcome import PERFECT, Errored, Finding, Outcome, Scored, Skipped, build_failure
from service.core.schemas import SchemaProblem
from service.core.shapes import has_matcher
from service.core.trace import Step, ToolDef

Metric = Literal["function_name_match", "parameter_validation", "function_call_accuracy", "function_call_exact_match"]


class FutureAgiGate(Check):
    """One of Future AGI's function-calling metrics, over calls paired one to one.

    `function_name_match`: the tool is the expected one. `validate_parameters`: the share of a call's parameters, declared or
    given, that the tool's JSON Schema has nothing against; needs no expectation. `function_call_accuracy`: 0.4 for the name,
    0.3 for the share of arguments, expected or given, that both have, 0.3 for the share that is right; of several calls one of
    a wrong tool is 0.
    `function_call_exact_match`: 1.0 if all calls are the expected ones, else 0.0. No call expected and none made is 1.0; a
    missing call and an unexpected one are 0. With `compat` in the rubric Future AGI's own number. Findings: `wrong_tool`,
    `missing_call`, `extra_call`, `missing_argument`, `wrong_argument`, `extra_argument`, `unparsable_arguments`,
    `unknown_tool`, `schema_<keyword>`. Source: future-agi/ai-evaluation, `metrics/function_calling`.
    """

    kind: Literal["future_agi"] = "future_agi"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "tools"})
    metric: Metric
    strict_type_check: bool = False
    """Whether 1 and 1.0 differ."""
    ignore_extra_params: bool = False
    """Whether arguments beyond the expected or declared ones are fine."""
    order_matters: bool = False
    """Whether the first call is held against the first expected one, and so on."""

    def aspects(self) -> frozenset[Aspect]:
        """The tools alone by name match, none by validation."""
        if self.metric == "parameter_validation":
            return frozenset()
        return self.reads - {"args"} if self.metric == "function_name_match" else self.reads

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """One outcome for each pair, each missing and each extra call; for exact match, and with `compat`, one for the trace."""
        validating = self.metric == "parameter_validation"
        if not validating and not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        if case.matching.compat:
            return [(WHOLE, self._score_upstream(case))]
        if validating:
            checked = ((case.subjects[step.index], self._validate(case, step)) for step in case.trace.steps)
            return checked if case.trace.steps else [(WHOLE, Skipped("not_applicable", "no call was made"))]
        seen = add_idle(self._score_calls(case), case)
        return fold_all_or_nothing(seen) if self.metric == "function_call_exact_match" else seen

    def pair_value(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """The accuracy of this pair."""
        outcome = self._score_accuracy(case, pattern, step, PERFECT, explain=False)
        return outcome.value if isinstance(outcome, Scored) else 0.0

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:  # noqa: ARG002
        """Without a matcher, where types are no matter beyond equality."""
        return not self.strict_type_check and pattern.args is not None and not has_matcher(pattern.args)

    def _score_calls(self, case: Case) -> Iterable[SubjectOutcome]:
        steps = case.trace.steps
        alignment = _pair_in_sequence(case) if self.order_matters else case.alignment
        for pair in alignment.pairs:
            scored = self._score_pair(case, pair)
            yield case.subjects[pair.step], scored if self.order_matters else settle_pair(case, pair, scored)
        for i in alignment.missing:
            yield score_missing(case, i)
        for j in alignment.extra:
            outcome = case.score_unexpected(steps[j])
            if outcome is not None:
                yield case.subjects[j], outcome

    def _score_pair(self, case: Case, pair: Pair) -> Outcome:
        name = score_name(case, pair)
        alone = len(case.wanted) == len(case.trace.steps) == 1
        if self.metric == "function_name_match" or not (name.passed or alone):
            return name  # among several calls, one of a wrong tool earns nothing, or any call would be better than none
        return self._score_accuracy(case, pair.pattern, case.trace.steps[pair.step], name)

    def _score_accuracy(
        self, case: Case, pattern: CallPattern, step: Step, name: Scored, *, explain: bool = True
    ) -> Outcome:
        """0.4 for the name, 0.3 for the arguments both sides have, 0.3 for those that are right."""
        if pattern.args is None:
            return self._weigh(name, 1.0, 1.0, [])
        given = step.call.arguments
        if given is None and not step.call.captured and name.passed:
            return NOT_TOLD
        if given is None:
            return self._weigh(name, 0.0, 0.0, [build_unparsable(step)])
        bound = bind_arguments(case, pattern)
        due = [one for one in bound if not one.optional or one.name in given]
        there = {one.name: self._match(one, given[one.name], explain=explain) for one in due if one.name in given}
        for found in there.values():
            if isinstance(found, OpenComparison):
                return Skipped(found.cause, found.reason)
        matches = {key: found for key, found in there.items() if isinstance(found, Match)}
        extra = [] if self._ignores_extra(pattern) else [key for key in given if key not in pattern.args]
        total = len(due) + len(extra)
        presence = len(matches) / total if total else 1.0
        right = fsum(found.value for found in matches.values()) / total if total else 1.0
        absent = [one.name for one in due if one.name not in given]
        return self._weigh(name, presence, right, list(_argument_findings(step, matches, absent, extra)))

    def _ignores_extra(self, pattern: CallPattern) -> bool:
        return self.ignore_extra_params if pattern.extra_args is None else pattern.extra_args == "allow"

    def _match(self, bound: BoundArgument, value: JsonValue, *, explain: bool) -> Match | OpenComparison:
        found = bound.match(value, explain=explain)
        typed = bound.critic is not None or is_same_value(value, bound.expected, strict=self.strict_type_check)
        if isinstance(found, Match) and found.passed and not typed:
            return Match(0.0, False, "the type is another")
        return found

    def _weigh(self, name: Scored, presence: float, right: float, findings: list[Finding]) -> Outcome:
        if name.passed and not findings:
            return PERFECT
        parts = (NAME * name.value, PRESENCE * presence, VALUE * right)
        return build_failure(min(1.0, fsum(parts)), *name.findings, *findings)

    def _validate(self, case: Case, step: Step) -> Outcome:
        """The share of parameters that the schema of the tool has nothing against."""
        if case.trace.tools is None:
            return Skipped("not_captured", "the trace does not say which tools were on offer")
        tool, given = case.catalogue.get(step.call.name), step.call.arguments
        if tool is None:
            return build_failure(0.0, build_unknown_tool(case, step))
        if given is None:
            return score_unread(step)
        if tool.parameters is None:
            return Skipped("not_applicable", f"{tool.name} declares no parameters schema")
        try:
            return self._validate_parameters(case, tool, step, given)
        except SchemaProblem as problem:
            return Errored("invalid_schema", f"the schema of {tool.name} cannot be used: {problem}")

    def _validate_parameters(self, case: Case, tool: ToolDef, step: Step, given: Mapping[str, JsonValue]) -> Outcome:
        schema = case.schema(tool)
        path = f"{build_call_path(step)}/arguments"
        wrong: dict[str, Finding] = {}
        violations = case.list_violations(schema, given)
        for violation in violations:
            name = next(
                iter(split_pointer(violation.path)), violation.message
            )  # one of the whole is a check of its own
            if self.ignore_extra_params and violation.keyword in CLOSED and violation.path.count("/") == 1:
                continue
            wrong.setdefault(name, Finding(f"schema_{violation.keyword}", violation.message, path + violation.path))
        for name in () if self.ignore_extra_params else schema.find_undeclared(given):
            message = f"{name} is no parameter of {tool.name}"
            wrong.setdefault(name, Finding("extra_argument", message, f"{path}/{escape_token(name)}"))
        if not wrong:
            return PERFECT
        declared = _list_declared(tool)
        counted = declared | set(wrong) if self.ignore_extra_params else declared | set(wrong) | set(given)
        total = len(counted)
        return build_failure((total - len(wrong)) / total, *wrong.values())

    def _score_upstream(self, case: Case) -> Outcome:
        options = Options(self.strict_type_check, self.ignore_extra_params, self.order_matters)
        made = [(step.call.name, step.call.arguments or {}) for step in case.trace.steps]
        if self.metric == "parameter_validation":
            declared = {t.name: read_parameters(_get_schema(t)) for t in case.trace.tools or ()}
            raw = validate_parameters(made, declared, options)
            return build_method_score(self, case, raw, system="Future AGI", why=SIMPLE_TYPES)
        options_of = [wanted.options[0] for wanted in case.wanted]
        expected = [(pattern.tool, read_plain_args(path, pattern, "Future AGI")) for path, pattern in options_of]
        if self.metric == "function_name_match":
            raw = match_name(made, expected)
        elif self.metric == "function_call_accuracy":
            spend_on_pairs(case, each=12)
            raw = compute_accuracy(made, expected, options)
        else:
            raw = match_exactly(made, expected, options)
        return build_method_score(self, case, raw, system="Future AGI", why=ONE_CALL)


CLOSED = frozenset({"additionalProperties", "unevaluatedProperties"})
"""What a schema says to allow no further parameters."""

SIMPLE_TYPES = "it validates one call, knows only plain types and enums, and reads broken arguments as {}"
ONE_CALL = (
    "no call is 0 there, several calls are 0 or may share one call, extra arguments and calls are mostly free, "
    "broken arguments are {}"
)


def _argument_findings(
    step: Step, matches: Mapping[str, Match], absent: Iterable[str], extra: Iterable[str]
) -> Iterable[Finding]:
    path = f"{build_call_path(step)}/arguments"
    for name in absent:
        yield Finding("missing_argument", f"{name}: missing", f"{path}/{escape_token(name)}")
    for name, found in matches.items():
        if not found.passed:
            yield Finding("wrong_argument", f"{name}: {found.note}", f"{path}/{escape_token(name)}")
    for name in extra:
        yield Finding("extra_argument", f"{name}: not expected", f"{path}/{escape_token(name)}")


def _pair_in_sequence(case: Case) -> Alignment:
    """The first expected call with the first call made, and so on."""
    wanted, steps = case.wanted, case.trace.steps
    both = range(min(len(wanted), len(steps)))
    return Alignment(
        pairs=tuple([Pair(n, n, *wanted[n].options[0]) for n in both]),
        missing=tuple([n for n in range(len(steps), len(wanted)) if wanted[n].required]),
        extra=tuple(range(len(wanted), len(steps))),
    )


def _get_schema(tool: ToolDef) -> Mapping[str, JsonValue]:
    return tool.parameters if isinstance(tool.parameters, Mapping) else {}


def _list_declared(tool: ToolDef) -> set[str]:
    properties = _get_schema(tool).get("properties")
    return set(properties) if isinstance(properties, Mapping) else set()


# The number, as their code has it.


Call = tuple[str, Mapping[str, JsonValue]]
"""A function's name and its arguments."""

NAME, PRESENCE, VALUE = 0.4, 0.3, 0.3
"""What the name, the presence and the values of the arguments weigh in a call's accuracy."""


@dataclass(frozen=True, slots=True)
class Options:
    """The switches of a FunctionCallInput, with its defaults."""

    strict_type_check: bool = False
    """Whether 1 and 1.0 differ, and an integer is a whole number."""
    ignore_extra_params: bool = False
    order_matters: bool = False
    """Whether the first call is held against the first expected one, and so on."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter. An unknown type means string."""

    name: str
    type: str = "string"
    required: bool = True
    enum: tuple[JsonValue, ...] = ()


DEFAULTS = Options()


def match_name(made: Sequence[Call], expected: Sequence[Call]) -> float:
    """1.0 if one call was made, one expected, and the names are the same, else 0.0."""
    return float(len(made) == len(expected) == 1 and made[0][0] == expected[0][0])


def validate_parameters(
    made: Sequence[Call], functions: Mapping[str, Sequence[Parameter]], options: Options = DEFAULTS
) -> float:
    """The share of the declared parameters, and of those given beside them, that are right; left-out optional ones are.

    >>> declared = {"f": [Parameter("a"), Parameter("b", required=False), Parameter("c", required=False)]}
    >>> validate_parameters([("f", {})], declared), validate_parameters([("f", {"a": "x", "z": 1})], declared)
    (0.6667, 0.75)
    """
    if len(made) != 1 or made[0][0] not in functions:
        return 0.0
    declared, given = functions[made[0][0]], made[0][1]
    extra = 0 if options.ignore_extra_params else len(given.keys() - {parameter.name for parameter in declared})
    passed = sum(_is_valid(parameter, given, options) for parameter in declared)
    total = len(declared) + extra
    return round(passed / total, 4) if total else 1.0


def _is_valid(parameter: Parameter, given: Mapping[str, JsonValue], options: Options) -> bool:
    if parameter.name not in given:
        return not parameter.required
    value = given[parameter.name]
    if not _has_type(value, parameter.type.lower(), strict=options.strict_type_check):
        return False
    return not parameter.enum or value in parameter.enum


_TYPES: Mapping[str, tuple[type, ...]] = {
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _has_type(value: JsonValue, declared: str, *, strict: bool) -> bool:
    if isinstance(value, bool):
        return declared == "boolean"
    if strict and declared == "integer":
        return isinstance(value, int)
    return isinstance(value, _TYPES.get(declared, (str,)))


def compute_accuracy(made: Sequence[Call], expected: Sequence[Call], options: Options = DEFAULTS) -> float:
    """Name 0.4, expected arguments there 0.3, their values 0.3; of several expected calls each takes its best call made.

    >>> (
    ...     compute_accuracy([("g", {"a": 1})], [("f", {"a": 1})]),
    ...     compute_accuracy([("f", {})], [("f", {}), ("f", {})]),
    ...     compute_accuracy([], []),
    ... )
    (0.6, 1.0, 0.0)
    """
    if not made or not expected:
        return 0.0
    if len(made) == len(expected) == 1:
        return compute_call_accuracy(made[0], expected[0], options)
    if options.order_matters:
        if len(made) != len(expected):
            return 0.0
        scores = [compute_call_accuracy(*pair, options) for pair in zip(made, expected, strict=True)]
        return round(sum(scores) / len(scores), 4)
    best = [max(compute_call_accuracy(call, wanted, options) for call in made) for wanted in expected]
    met = [score for score in best if score > 0]
    return round(len(met) / len(expected) * (sum(met) / len(met)), 4) if met else 0.0


def compute_call_accuracy(made: Call, expected: Call, options: Options = DEFAULTS) -> float:
    """The accuracy of one call."""
    given, wanted = made[1], expected[1]
    there = [name for name in wanted if name in given]
    right = [name for name in there if is_same_value(given[name], wanted[name], strict=options.strict_type_check)]
    free = not given or options.ignore_extra_params
    presence = len(there) / len(wanted) if wanted else float(free)
    value = len(right) / len(wanted) if wanted else 1.0
    return round((made[0] == expected[0]) * NAME + presence * PRESENCE + value * VALUE, 4)


def match_exactly(made: Sequence[Call], expected: Sequence[Call], options: Options = DEFAULTS) -> float:
    """1.0 if one call was made, one expected, and name, arguments and values are the same, else 0.0."""
    if not match_name(made, expected):
        return 0.0
    given, wanted = made[0][1], expected[0][1]
    same_names = wanted.keys() <= given.keys() if options.ignore_extra_params else wanted.keys() == given.keys()
    return float(
        same_names
        and all(is_same_value(given[name], value, strict=options.strict_type_check) for name, value in wanted.items())
    )


def is_same_value(made: JsonValue, expected: JsonValue, *, strict: bool = False) -> bool:
    """Equality as Future AGI has it: numbers as floats, a boolean no number, strict types on request; safe at any depth.

    >>> is_same_value(2**53 + 1, 2.0**53), is_same_value(True, 1), is_same_value([1], [1.0], strict=True)
    (True, False, False)
    """
    pairs = [(made, expected)]
    while pairs:
        one, other = pairs.pop()
        if strict and type(one) is not type(other):
            return False
        inner = _pair_members(one, other)
        if inner is None:
            if not _is_same_scalar(one, other):
                return False
            continue
        pairs += inner
    return True


_Pairs = list[tuple[JsonValue, JsonValue]]


def _pair_members(one: JsonValue, other: JsonValue) -> _Pairs | None:
    """The members to compare of two containers of one form; None for anything else."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return list(zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [(one[key], other[key]) for key in other]
    return None


def _is_same_scalar(one: JsonValue, other: JsonValue) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return _convert_to_float(one) == _convert_to_float(other)
    return isinstance(one, str | None) and type(one) is type(other) and one == other


def _convert_to_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return number  # where upstream stops with an error, the number is itself


Spec = Mapping[str, JsonValue]


def read_parameters(schema: Spec) -> tuple[Parameter, ...]:
    """The parameters that a JSON Schema declares, as far as Future AGI can say them: no nesting, ranges or patterns."""
    properties, required = schema.get("properties"), schema.get("required")
    needed = required if isinstance(required, list) else []
    if not isinstance(properties, dict):
        return ()
    return tuple([_read_parameter(name, declared, required=name in needed) for name, declared in properties.items()])


def _read_parameter(name: str, declared: JsonValue, *, required: bool) -> Parameter:
    spec: Spec = declared if isinstance(declared, dict) else {}
    kind, enum = spec.get("type"), spec.get("enum")
    allowed = tuple(enum) if isinstance(enum, list) else ()
    return Parameter(name, kind if isinstance(kind, str) else "", required, allowed)

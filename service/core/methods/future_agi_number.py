"""Future AGI's four numbers, as their code has them.

Source: future-agi/ai-evaluation, `python/fi/evals/metrics/function_calling/metrics.py` (1.1.0). Arguments that are no JSON
object count as {}, so two broken calls match exactly; no call expected and none made scores 0; one call may stand for several
expected ones; three of the four metrics know a single call only and score a list of calls 0. Scores lie in [0, 1], rounded
to four places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

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

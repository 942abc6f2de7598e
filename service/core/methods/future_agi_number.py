"""Compute Future AGI's four numbers as their code does.

Source: future-agi/ai-evaluation, `python/fi/evals/metrics/function_calling/metrics.py` (1.1.0). Arguments that are not a JSON
object count as {}, so two broken calls match exactly; no call expected and none made scores 0; one call may stand for several
expected ones; three of the four metrics know only a single call and score a list of calls 0. Scores lie in [0, 1], rounded to
four places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

Call = tuple[str, Mapping[str, JsonValue]]
"""A function's name and its arguments."""

NAME, PRESENCE, VALUE = 0.4, 0.3, 0.3
"""The weights of the name, and of the presence and the values of the arguments, in a call's accuracy."""


@dataclass(frozen=True, slots=True)
class Options:
    """The switches of a FunctionCallInput, with its defaults."""

    strict_type_check: bool = False
    """Whether 1 and 1.0 differ, and only an int is an integer."""
    ignore_extra_params: bool = False
    order_matters: bool = False
    """Whether the first call is compared with the first expected one, and so on."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter. An unknown type means string."""

    name: str
    type: str = "string"
    required: bool = True
    enum: tuple[JsonValue, ...] = ()


DEFAULTS = Options()


def match_name(made: Sequence[Call], expected: Sequence[Call]) -> float:
    """Return 1.0 if one call was made and one expected, of the same name, else 0.0."""
    return float(len(made) == len(expected) == 1 and made[0][0] == expected[0][0])


def validate_parameters(
    made: Sequence[Call], functions: Mapping[str, Sequence[Parameter]], options: Options = DEFAULTS
) -> float:
    """Return the share of the parameters, declared or given, that are right; an absent optional one is right.

    >>> declared = {"f": [Parameter("a"), Parameter("b", required=False), Parameter("c", required=False)]}
    >>> validate_parameters([("f", {})], declared), validate_parameters([("f", {"a": "x", "z": 1})], declared)
    (0.6667, 0.75)
    """
    if len(made) != 1 or made[0][0] not in functions:
        return 0.0
    declared, arguments = functions[made[0][0]], made[0][1]
    extra = 0 if options.ignore_extra_params else len(arguments.keys() - {parameter.name for parameter in declared})
    passed = sum(_is_valid(parameter, arguments, options) for parameter in declared)
    total = len(declared) + extra
    return round(passed / total, 4) if total else 1.0


def _is_valid(parameter: Parameter, arguments: Mapping[str, JsonValue], options: Options) -> bool:
    if parameter.name not in arguments:
        return not parameter.required
    value = arguments[parameter.name]
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
    """Weigh name 0.4, presence of the expected arguments 0.3, their values 0.3; of several, each expected call takes its best.

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
    best = [max(compute_call_accuracy(call, expected_call, options) for call in made) for expected_call in expected]
    above_zero = [score for score in best if score > 0]
    coverage = len(above_zero) / len(expected)
    return round(coverage * (sum(above_zero) / len(above_zero)), 4) if above_zero else 0.0


def compute_call_accuracy(made: Call, expected: Call, options: Options = DEFAULTS) -> float:
    """Compute the accuracy of one call."""
    actual, due = made[1], expected[1]
    present = [name for name in due if name in actual]
    right = [name for name in present if is_same_value(actual[name], due[name], strict=options.strict_type_check)]
    free = not actual or options.ignore_extra_params
    presence = len(present) / len(due) if due else float(free)
    value = len(right) / len(due) if due else 1.0
    return round((made[0] == expected[0]) * NAME + presence * PRESENCE + value * VALUE, 4)


def match_exactly(made: Sequence[Call], expected: Sequence[Call], options: Options = DEFAULTS) -> float:
    """Return 1.0 if one call was made and one expected, with the same name, arguments and values, else 0.0."""
    if not match_name(made, expected):
        return 0.0
    actual, due = made[0][1], expected[0][1]
    same_names = due.keys() <= actual.keys() if options.ignore_extra_params else due.keys() == actual.keys()
    return float(
        same_names
        and all(is_same_value(actual[name], value, strict=options.strict_type_check) for name, value in due.items())
    )


def is_same_value(made: JsonValue, expected: JsonValue, *, strict: bool = False) -> bool:
    """Compare as Future AGI does: numbers as floats, a boolean is not a number, types strict on request; safe at any depth.

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
    """Pair the members of two lists of one length, or of two objects with the same keys; None for anything else."""
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
        return number  # upstream raises here; we compare the number as it is


Spec = Mapping[str, JsonValue]


def read_parameters(schema: Spec) -> tuple[Parameter, ...]:
    """Read the parameters that a JSON Schema declares, as far as Future AGI knows them: no nesting, ranges or patterns."""
    properties, required = schema.get("properties"), schema.get("required")
    names = required if isinstance(required, list) else []
    if not isinstance(properties, dict):
        return ()
    return tuple([_read_parameter(name, declared, required=name in names) for name, declared in properties.items()])


def _read_parameter(name: str, declared: JsonValue, *, required: bool) -> Parameter:
    spec: Spec = declared if isinstance(declared, dict) else {}
    kind, enum = spec.get("type"), spec.get("enum")
    allowed = tuple(enum) if isinstance(enum, list) else ()
    return Parameter(name, kind if isinstance(kind, str) else "", required, allowed)

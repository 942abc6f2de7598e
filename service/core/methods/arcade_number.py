"""Compute Arcade's number for one case as their code does.

Source: ArcadeAI/arcade-mcp, `libs/arcade-evals/arcade_evals/eval.py` (EvalCase.evaluate) and `weights.py`. A critic that raises
loses its weight, so a missing argument can raise the score; a pair without the field can be a match; a score can be negative;
and with the default thresholds no score warns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import cast

from pydantic import JsonValue

from service.core.methods.arcade_critics import CriticKind, CriticResult, CriticSpec, compare
from service.core.weights import compute_shares

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
    """The result for one field of one pair of calls (or for its tool, under `tool_selection`).

    `pair` holds the indices of the expected and the actual call; `score` is already weighted; `match` is None where nothing was
    compared. `counted` is False where the critic raised: the row scores 0 and its weight is left out.
    """

    pair: tuple[int, int]
    field: str
    expected: JsonValue
    actual: JsonValue
    weight: float
    score: float
    match: bool | None
    counted: bool = True
    kind: CriticKind | None = None


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Arcade's result. `failure_reason` is set where one of its gates failed the case.

    `score` is at most 1 and may be negative, even minus infinity (for an infinite argument under a numeric critic).
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
    """Compute Arcade's number for one case.

    `critics` are used as they are, at most one for each field; Arcade's `add_case` passes them through `add_placeholders`
    first. `schemas` are the tools' JSON Schemas by name; their defaults fill in for arguments that are missing or null, on both
    sides. Arguments that no critic names are not compared.
    Raises ValueError for two critics of one field, and where Arcade itself stops because the arguments hold NaN or an infinity
    (which numeric critics read from text, too) and no assignment is possible. Raises UndefinedUpstreamError for a date that
    depends on the day.
    """
    if len({critic.field for critic in critics}) < len(critics):
        raise ValueError("a field has one critic")
    rubric = rubric or RubricSpec()
    reason = _find_gate_reason(expected, actual, rubric)
    if reason:
        return CaseResult(0.0, False, failure_reason=reason)
    if not critics or not (expected or actual):
        return CaseResult(1.0, True)
    expected = [fill_defaults(call, schemas or {}) for call in expected]
    actual = [fill_defaults(call, schemas or {}) for call in actual]
    return _conclude_case(tuple(_build_rows(expected, actual, _share_weights(critics), rubric)), rubric)


def _share_weights(critics: Critics) -> WeightedCritics:
    """Return the critics with their shares of the weight; placeholders have none."""
    share = compute_shares({critic.field: critic.weight for critic in critics if critic.kind != "none"})
    return [(critic, share.get(critic.field, 0.0)) for critic in critics]


def add_placeholders(expected: Sequence[Call], critics: Critics) -> tuple[CriticSpec, ...]:
    """Return the critics, and a critic that compares nothing for every expected argument without one.

    So a case has no critics (and then passes whatever was called, once the gates are off) only if no expected call has an
    argument.
    """
    covered = {critic.field for critic in critics}
    fields = dict.fromkeys(field for _, args in expected for field in args if field not in covered)
    return (*critics, *(CriticSpec(field, "none", 0.0) for field in fields))


def fill_defaults(call: Call, schemas: Mapping[str, Schema]) -> Call:
    """Return the call with its schema's defaults for arguments that are missing or null. A tool `a.b` is also found as `a_b`."""
    name, args = call
    schema = schemas.get(name) or next((one for key, one in schemas.items() if key.replace(".", "_") == name), None)
    properties = schema.get("properties") if schema else None
    if not isinstance(properties, Mapping):
        return call
    defaults: dict[str, JsonValue] = {
        key: value["default"]
        for key, value in properties.items()
        if isinstance(value, Mapping) and "default" in value and args.get(key) is None
    }
    return name, {**args, **defaults}


def _find_gate_reason(expected: Sequence[Call], actual: Sequence[Call], rubric: RubricSpec) -> str | None:
    """Return why the case fails before any critic runs. The shorter list of names decides how many are compared."""
    if rubric.fail_on_tool_call_quantity and len(expected) != len(actual):
        return f"{len(expected)} calls expected, {len(actual)} made"
    expected_names, actual_names = sorted(name for name, _ in expected), sorted(name for name, _ in actual)
    all_same = all(is_same_name(one, other) for one, other in zip(expected_names, actual_names, strict=False))
    if rubric.fail_on_tool_selection and not all_same:
        return f"expected the tools {', '.join(expected_names)}, got {', '.join(actual_names)}"
    return None


def is_same_name(expected: str, actual: str) -> bool:
    """Whether two tool names are the same, where `-`, `_` and `.` are one character and case does not matter.

    >>> is_same_name("Google.Search-All", "google_search_all")
    True
    """
    one, other = (name.replace("-", ".").replace("_", ".").lower() for name in (expected, actual))
    return one == other


def _build_rows(
    expected: Sequence[Call], actual: Sequence[Call], critics: WeightedCritics, rubric: RubricSpec
) -> Iterator[Row]:
    """Yield the rows of every assigned pair; a call without a counterpart has none, and so costs nothing."""
    size = max(len(expected), len(actual))
    gains = [[0.0] * size for _ in range(size)]
    for i, expected_call in enumerate(expected):
        gains[i][: len(actual)] = [_compute_gain(expected_call, call, critics, rubric) for call in actual]
    for i, j in _assign(gains):
        if i < len(expected) and j < len(actual):
            yield from _build_pair_rows((i, j), expected[i], actual[j], critics, rubric)


def _compute_gain(expected_call: Call, call: Call, critics: WeightedCritics, rubric: RubricSpec) -> float:
    """Compute the gain of a pair for the assignment. Unlike the score, it leaves out fields that either side lacks."""
    gain = rubric.tool_selection_weight if is_same_name(expected_call[0], call[0]) else 0.0
    for critic, weight in critics:
        expected, actual = expected_call[1].get(critic.field), call[1].get(critic.field)
        result = _compare(critic, expected, actual) if expected is not None and actual is not None else None
        gain += result.share * weight if result else 0.0
    return gain


def _compare(critic: CriticSpec, expected: JsonValue, actual: JsonValue) -> CriticResult | None:
    """Return the critic's result; None where it raises."""
    try:
        return compare(critic, expected, actual)
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, AssertionError):
        return None


def _assign(gains: list[list[float]]) -> list[tuple[int, int]]:
    """Return the assignment with the greatest gain, by scipy as upstream: its choice among equals can move the score."""
    if len(gains) == 1 and isfinite(gains[0][0]):
        return [(0, 0)]
    from scipy import optimize  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs] (heavy, and most cases have one call)

    solve = cast("Callable[..., tuple[Iterable[int], Iterable[int]]]", optimize.linear_sum_assignment)
    rows, columns = solve(gains, maximize=True)
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True)]


def _build_pair_rows(
    pair: tuple[int, int], expected_call: Call, call: Call, critics: WeightedCritics, rubric: RubricSpec
) -> Iterator[Row]:
    is_same, weight = is_same_name(expected_call[0], call[0]), rubric.tool_selection_weight
    yield Row(pair, TOOL_SELECTION, expected_call[0], call[0], weight, weight * is_same, is_same)
    for critic, weight in critics:
        expected, actual = expected_call[1].get(critic.field), call[1].get(critic.field)
        own_result = _compare(critic, expected, actual)
        result = own_result or CriticResult(False, 0.0)
        score = result.share * weight
        counted = own_result is not None
        yield Row(pair, critic.field, expected, actual, weight, score, result.match, counted, critic.kind)


def _conclude_case(rows: tuple[Row, ...], rubric: RubricSpec) -> CaseResult:
    weight = sum(row.weight for row in rows if row.counted)
    score = sum(row.score for row in rows) / weight if weight > 0 else 0.0
    passed = score >= rubric.fail_threshold
    return CaseResult(score, passed, warning=not passed and score >= rubric.warn_threshold, rows=rows)

"""The numbers of published methods, theirs and ours, by the tables in `tests/data/carried`."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from service import InputError, score
from service.core.expectations.templates import Matcher
from service.core.methods.arcade_critics import UndefinedUpstreamError, compare
from service.core.outcome import MethodScore
from service.core.weights import compute_shares
from tests.bulk import examples
from tests.core.carried_cases import STAGES, codes, load, report, trace, values
from tests.tables import DATA, read_yaml

SEEN = read_yaml(DATA / "carried" / "seen.yaml")

FUTURE_AGI = load("future_agi")
METRICS = ("function_name_match", "parameter_validation", "function_call_accuracy", "function_call_exact_match")

APPLE_ROWS = [("apple", "trajectory", row) for row in load("apple")]
FUTURE_AGI_ROWS = [("future_agi", "function_calling", row) for row in FUTURE_AGI["cases"]]
UIPATH_ROWS = [("uipath", part, row) for part, rows in load("uipath").items() for row in rows]
OUTPUT_ROWS = [("uipath_output", part, row) for part, rows in load("uipath_output").items() for row in rows]
ROWS = [
    pytest.param(method, part, row, id=f"{method} {part}: {row['name']}")
    for method, part, row in (*APPLE_ROWS, *FUTURE_AGI_ROWS, *UIPATH_ROWS, *OUTPUT_ROWS)
]


def scored(method: str, part: str, row: dict[str, Any], *, compat: bool):
    """The report on a row, and the ids of the criteria that its numbers are of."""
    if method == "apple":
        return report("apple_trajectory", row, compat=compat), ("all_pass", "percentage")
    if method == "future_agi":
        checks = [{"kind": "future_agi", "metric": metric, **row.get("options", {})} for metric in METRICS]
        criteria = [{"id": check["metric"], "stage": "arguments", "check": check} for check in checks]
        row = {"tools": FUTURE_AGI["tools"], **row}
        return report("future_agi_function_calling", row, compat=compat, criteria=tuple(criteria)), METRICS
    if method == "uipath":
        check = {"kind": f"uipath_tool_call_{part}"} | {k: row[k] for k in ("strict", "subset") if k in row}
        criterion = {"id": part, "stage": STAGES[part], "check": check}
        return report(f"uipath_tool_call_{part}", row, compat=compat, criteria=(criterion,)), (part,)
    criterion = {"id": part, "stage": "integrate", "check": {"kind": f"uipath_{part}"} | row.get("check", {})}
    rubric = {"extends": f"uipath_{part}", "compat": compat, "criteria": [criterion]}
    gave = {"format": "callgrade", "events": [{"user": "Please."}], "output": row["gave"]}
    return score({"rubric": rubric, "trace": gave, "expected": {"output": row["expected"]}}), (part,)


@pytest.mark.parametrize("compat", [True, False])
@pytest.mark.parametrize(("method", "part", "row"), ROWS)
def test_their_number_and_ours(method: str, part: str, row: dict[str, Any], compat: bool) -> None:
    found, criteria = scored(method, part, row, compat=compat)
    upstream, ours = (
        [n] if isinstance(n, int | float) else n for n in (row["upstream"], row.get("ours", row["upstream"]))
    )
    for criterion, wanted in zip(criteria, upstream if compat else ours, strict=True):
        near = wanted if wanted is None else pytest.approx(wanted, abs=1e-9)
        assert values(found)[criterion] == near, criterion
    assert ("compat_differs" in codes(found)) == (compat and upstream != ours)
    assert compat or row.get("finding") is None or row["finding"] in codes(found)
    assert method == "future_agi" or compat or (found.verdict == "pass") == (ours[0] >= 0.9)


@pytest.mark.parametrize(("metric", "made", "expected", "options", "wanted"), SEEN["seen"])
def test_what_was_seen_of_future_agis_code(metric: int, made: Any, expected: Any, options: Any, wanted: float) -> None:
    row = {"made": made, "expected": {"calls": [{"tool": tool, "args": args} for tool, args in expected]}}
    found, _ = scored("future_agi", "", {**row, "options": options}, compat=True)
    assert values(found)[METRICS[metric]] == wanted


ARCADE = load("arcade")
PAIRS = [
    pytest.param(row["critic"], *pair[:2], pair[2:], id=f"{row['critic']}: {pair[0]!r}, {pair[1]!r}")
    for row in ARCADE["critics"]
    for pair in row["pairs"]
]
MATCHER: TypeAdapter[Any] = TypeAdapter(Matcher)


@pytest.mark.parametrize(("critic", "expected", "actual", "outcome"), PAIRS)
def test_one_critic_of_arcade(critic: Any, expected: Any, actual: Any, outcome: list[Any]) -> None:
    raised = len(outcome) == 1
    found = compare(MATCHER.validate_python(critic), expected, actual)
    assert found == (None if raised else (outcome[0], pytest.approx(outcome[1], abs=1e-9, rel=0)))


@pytest.mark.parametrize("text", ["3 PM", "Friday", "x" * 1_001])
def test_arcade_has_no_number_for_a_date_that_depends_on_the_day(text: str) -> None:
    critic = MATCHER.validate_python({"kind": "datetime"})
    with pytest.raises(UndefinedUpstreamError):
        compare(critic, text, text)
    if len(text) < 100:
        assert compare(critic, text, text, date(2024, 5, 6)) == (True, 1.0)


def arcade(case: dict[str, Any]):
    """Arcade's own result: its outcome, and the report."""
    critics = {name: dict(critic) for name, critic in case.get("critics", {}).items()}
    weights = {name: critic.pop("weight") for name, critic in critics.items() if "weight" in critic}
    rubric, thresholds = dict(case.get("rubric", {})), {}
    for name in ("fail", "warn"):
        thresholds |= {name: rubric.pop(name)} if name in rubric else {}
    check = {"kind": "arcade", "critics": critics, "weights": weights, **rubric}
    changed = {"extends": "arcade", "compat": True, "thresholds": {"fail": 0.8, "warn": 0.9} | thresholds}
    changed["criteria"] = [{"id": "calls", "stage": "arguments", "check": check}]
    given = trace({"made": case["actual"]})
    given["tools"] = [{"name": name, "parameters": one} for name, one in case.get("schemas", {}).items()]
    expected = {"calls": [{"tool": name, "args": args} for name, args in case["expected"]]}
    found = score({"rubric": changed, "trace": given, "expected": expected})
    return found.criteria[0].outcomes[0].outcome, found


@pytest.mark.parametrize("case", ARCADE["cases"], ids=lambda case: case["name"])
def test_one_case_of_arcade(case: dict[str, Any]) -> None:
    outcome, found = arcade(case)
    assert isinstance(outcome, MethodScore)
    assert outcome.raw == pytest.approx(case["score"], abs=1e-9, rel=0)
    assert (outcome.passed, "arcade_warning" in codes(found)) == (case["passed"], case.get("warning", False))


def test_the_rows_say_what_arcade_compared() -> None:
    critics = {
        "a": {"kind": "exact", "weight": "high"},
        "n": {"kind": "numeric", "value_range": [0, 100], "weight": "low"},
    }
    expected, actual = [["f", {"a": 1}], ["f", {"a": 2, "n": 50}]], [["F", {"a": 2, "n": 60}], ["f", {"a": 1}]]
    outcome, _ = arcade({"critics": critics, "expected": expected, "actual": actual})
    assert isinstance(outcome, MethodScore)
    assert [(row.name, row.match, row.weight) for row in outcome.rows] == [
        ("tool_selection", True, 1.0), ("a", True, 0.625), ("n", False, 0.375),
        ("tool_selection", True, 1.0), ("a", True, 0.625), ("n", True, 0.375),
    ]  # fmt: skip
    assert [row.score for row in outcome.rows] == pytest.approx([1, 0.625, 0, 1, 0.625, 0.9 * 0.375])
    assert outcome.raw == pytest.approx((4 - 0.375 - 0.0375) / (4 - 0.375))


@pytest.mark.parametrize("made", [[["f", {"n": "nan"}]], [["f", {"n": "nan"}], ["f", {"n": 1}]]])
def test_where_arcade_stops_there_is_no_number(made: list[Any]) -> None:
    critics = {"n": {"kind": "numeric", "value_range": [0, 100]}}
    outcome, found = arcade({"critics": critics, "expected": [["f", {"n": 1}]] * len(made), "actual": made})
    assert (outcome.kind, found.verdict) == ("errored", "undecided")


VALUE = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "1", "2024-01-15", "2024-01-16"])
CALL = st.tuples(st.sampled_from(["f", "F", "g"]), st.dictionaries(st.sampled_from("ab"), VALUE)).map(list)
CRITIC = st.fixed_dictionaries(
    {"kind": st.sampled_from(["exact", "datetime"]), "weight": st.sampled_from([0.3, 2.0, "low"])}
)


@given(st.lists(CALL, max_size=3), st.lists(CALL, max_size=3), CRITIC, st.booleans())
@settings(deadline=None, max_examples=examples(60))
def test_arcades_number_is_at_most_one_and_one_for_what_was_expected(
    expected: list[Any], actual: list[Any], critic: Any, gates: bool
) -> None:
    rubric = {"fail_on_tool_selection": gates, "fail_on_tool_call_quantity": gates, "today": "2024-05-06"}
    other, _ = arcade({"critics": {"a": critic}, "expected": expected, "actual": actual, "rubric": rubric})
    assert isinstance(other, MethodScore)
    assert other.raw <= 1 + 1e-12
    assert other.passed == (other.raw >= 0.8)
    same, _ = arcade({"critics": {"a": {**critic, "kind": "exact"}}, "expected": expected, "actual": expected})
    assert isinstance(same, MethodScore)
    assert same.raw == pytest.approx(1.0)


@pytest.mark.parametrize(("weights", "expected"), SEEN["shares"])
def test_shares(weights: Any, expected: Any) -> None:
    assert compute_shares(weights) == pytest.approx(expected, abs=1e-6)


MATCHERS = [
    ("uipath", "args", {"args": {"x": {"kind": "range", "min": 1}}}),
    ("uipath", "output", {"result": {"kind": "present"}}),
    ("future_agi", "", {"args": {"x": {"kind": "range", "min": 1}}}),
]


@pytest.mark.parametrize(("method", "part", "pattern"), MATCHERS)
def test_a_matcher_has_no_number_there(method: str, part: str, pattern: dict[str, Any]) -> None:
    row = {"made": [["f", {"x": 1}, "1"]], "expected": {"calls": [{"tool": "f", **pattern}]}, "tools": []}
    found, criteria = scored(method, part, row, compat=False)
    assert values(found)[criteria[-1]] == 1.0
    with pytest.raises(InputError, match="/expected/calls/0/"):
        scored(method, part, row, compat=True)

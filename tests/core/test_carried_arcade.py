"""Arcade's numbers, critic by critic and case by case."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from service.core.methods.arcade_critics import CriticSpec, compare
from service.core.methods.arcade_number import RubricSpec, add_placeholders, score_case
from service.core.weights import WEIGHTS, compute_shares, read_weight

TABLE = yaml.safe_load((Path(__file__).parents[1] / "data" / "carried" / "arcade.yaml").read_text())


def near(number):
    return pytest.approx(number, abs=1e-9, rel=0)


PAIRS = [
    pytest.param(row["critic"], *pair[:2], pair[2:], id=f"{row['critic']}: {pair[0]!r}, {pair[1]!r}")
    for row in TABLE["critics"]
    for pair in row["pairs"]
]
RAISED = {error.__name__: error for error in (TypeError, ValueError, OverflowError)}


@pytest.mark.parametrize(("critic", "expected", "actual", "outcome"), PAIRS)
def test_one_critic(critic, expected, actual, outcome):
    spec = CriticSpec("x", **critic)
    if len(outcome) == 1:
        with pytest.raises(RAISED[outcome[0]]):
            compare(spec, expected, actual)
        return
    found = compare(spec, expected, actual)
    assert found.match is outcome[0]
    assert found.share == near(outcome[1])


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_one_case(case):
    expected, actual = ([tuple(call) for call in case[side]] for side in ("expected", "actual"))
    critics = [CriticSpec(field, **critic) for field, critic in case.get("critics", {}).items()]
    if case.get("placeholders"):
        critics = add_placeholders(expected, critics)
    found = score_case(expected, actual, critics, RubricSpec(**case.get("rubric", {})), case.get("schemas"))
    assert found.score == near(case["score"])
    assert (found.passed, found.warning) == (case["passed"], case.get("warning", False))
    assert found.failure_reason == case.get("gate")


def test_the_rows_say_what_was_compared_with_what():
    critics = [CriticSpec("a", "binary", "high"), CriticSpec("n", "numeric", "low", high=100.0)]
    expected = [("f", {"a": 1}), ("f", {"a": 2, "n": 50})]
    found = score_case(expected, [("F", {"a": 2, "n": 60}), ("f", {"a": 1})], critics)
    rows = [(row.pair, row.field, row.expected, row.actual, row.weight, row.match, row.counted) for row in found.rows]
    assert rows == [
        ((0, 1), "tool_selection", "f", "f", 1.0, True, True),
        ((0, 1), "a", 1, 1, 0.625, True, True),
        ((0, 1), "n", None, None, 0.375, False, False),
        ((1, 0), "tool_selection", "f", "F", 1.0, True, True),
        ((1, 0), "a", 2, 2, 0.625, True, True),
        ((1, 0), "n", 50, 60, 0.375, True, True),
    ]
    assert [row.score for row in found.rows] == pytest.approx([1, 0.625, 0, 1, 0.625, 0.9 * 0.375])
    assert found.score == pytest.approx((4 - 0.375 - 0.0375) / (4 - 0.375))


@pytest.mark.parametrize("made", [[("f", {"n": "nan"})], [("f", {"n": "nan"}), ("f", {"n": 1})]])
def test_where_arcade_stops_there_is_no_number(made):
    with pytest.raises(ValueError, match="matrix"):
        score_case([("f", {"n": 1})] * len(made), made, [CriticSpec("n", "numeric")])


def test_a_field_has_one_critic():
    with pytest.raises(ValueError, match="one critic"):
        score_case([], [], [CriticSpec("a", "binary"), CriticSpec("a", "numeric")])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"kind": "binary", "weight": -0.1}, "0 or more"),
        ({"kind": "numeric", "low": 1.0, "high": 1.0}, "upwards"),
        ({"kind": "numeric", "low": 2.0, "high": 1.0}, "upwards"),
    ],
)
def test_a_critic_that_cannot_be(spec, message):
    with pytest.raises(ValueError, match=message):
        CriticSpec("a", **spec)


def test_the_cases_given_are_left_as_they_were():
    expected, actual, critics = [("f", {"a": None})], [("f", {})], [CriticSpec("a", "binary", "high")]
    schemas = {"f": {"properties": {"a": {"default": [1]}, "b": {"default": 2}}}}
    score_case(expected, actual, add_placeholders(expected, critics), schemas=schemas)
    assert (expected, actual, critics) == ([("f", {"a": None})], [("f", {})], [CriticSpec("a", "binary", "high")])


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"a": "high", "b": "low"}, {"a": 0.625, "b": 0.375}),
        ({"a": "critical", "b": "medium"}, {"a": 0.636364, "b": 0.363636}),
        ({"a": 0.5, "b": "critical"}, {"a": 0.066667, "b": 0.933333}),
        ({"a": 0.7, "b": 0.3}, {"a": 0.7, "b": 0.3}),
        ({"a": 2.0, "b": 3}, {"a": 2.0, "b": 3.0}),
        ({"a": 0.0, "b": 0}, {"a": 0.0, "b": 0.0}),
        ({"a": "minimal"}, {"a": 1.0}),
        ({}, {}),
    ],
)
def test_shares(weights, expected):
    assert compute_shares(weights) == pytest.approx(expected, abs=1e-6)


def test_the_names_weigh_one_to_seven():
    names = ("minimal", "very_low", "low", "medium", "high", "very_high", "critical")
    assert [read_weight(name) for name in names] == [1, 2, 3, 4, 5, 6, 7]
    assert set(WEIGHTS) == set(names)


VALUE = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "1", "2024-01-15", "2024-01-16", "None"])
CALL = st.tuples(st.sampled_from(["f", "F", "g"]), st.dictionaries(st.sampled_from("ab"), VALUE))
CRITIC = st.builds(
    CriticSpec,
    st.just("a"),
    st.sampled_from(["binary", "numeric", "datetime", "none"]),
    st.sampled_from([0.0, 0.3, 1.0, 2.0, "low", "critical"]),
    today=st.just(date(2024, 5, 6)),
)
RUBRIC = st.builds(RubricSpec, fail_on_tool_selection=st.booleans(), fail_on_tool_call_quantity=st.booleans())


@given(st.lists(CALL, max_size=3), st.lists(CALL, max_size=3), CRITIC, RUBRIC)
def test_a_score_is_at_most_one_and_decides(expected, actual, critic, rubric):
    found = score_case(expected, actual, [critic], rubric)
    assert found.score <= 1 + 1e-12
    assert found.passed == (found.score >= 0.8)
    assert not found.warning


@given(st.lists(CALL, max_size=3), CRITIC)
def test_what_was_expected_is_perfect(calls, critic):
    kept = [(name, {field: value for field, value in args.items() if value != "None"}) for name, args in calls]
    found = score_case(kept, kept, [CriticSpec("a", "binary", critic.weight)])
    assert found.score == pytest.approx(1.0)
    assert found.passed


@given(CALL, CRITIC)
def test_a_raising_critic_takes_its_weight_along(call, critic):
    name, args = call
    found = score_case([call], [(name, {**args, "a": []})], [critic])
    counted = math.fsum(row.weight for row in found.rows if row.counted)
    assert found.score == pytest.approx(math.fsum(row.score for row in found.rows) / counted)
    assert all(row.score == 0 and row.match is False for row in found.rows if not row.counted)

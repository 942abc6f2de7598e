from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from service.core.critics import (
    AnyOf,
    Critic,
    DateTime,
    Exact,
    JsonSimilar,
    Match,
    Numeric,
    OpenComparison,
    Pattern,
    Similar,
    arcade_cosine,
    cosine,
)
from service.core.models.kinds import FrozenModel, TaggedUnion
from service.core.regex import compile_regex
from tests.tables import read_yaml

DATA = Path(__file__).parents[1] / "data" / "critics"
TABLES = read_yaml(DATA / "cases.yaml")
METRICS = ["cosine", "arcade_cosine", "levenshtein", "token_set"]

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([10**400, -(10**400), 1e308, -1e308, 5e-324, float("inf"), float("nan")])
    | st.sampled_from(
        ["3", "true", "2026-05-01", "2026-05-01T12:00Z", "9999-12-31T23:59:59-23:59", " ", "a b", "é漢\ud800"]
    )
    | st.text(st.characters(), max_size=20)
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
)
TEXTS = st.text(st.characters(), max_size=40) | st.lists(st.sampled_from(["a", "b", "to", "be", "3", "漢字"])).map(
    " ".join
)


class Holder(FrozenModel):
    """A model with a matcher in it, as rubrics and expectations have."""

    critic: Annotated[Critic, TaggedUnion()]


def critic_of(settings: dict) -> Critic:
    return Holder.model_validate({"critic": settings}).critic


def without_nan(value) -> bool:
    if isinstance(value, dict):
        return all(map(without_nan, value.values()))
    if isinstance(value, list):
        return all(map(without_nan, value))
    return not isinstance(value, float) or not math.isnan(value)


def deep(levels: int, end: object) -> object:
    value = end
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize(("settings", "row"), [(table["critic"], row) for table in TABLES for row in table["rows"]])
def test_the_tables(settings, row):
    actual, value, passed = row
    match = critic_of(settings).match(actual)
    assert match.value == pytest.approx(value, abs=5e-7)
    assert match.passed is passed
    assert match.note or match.passed


@pytest.mark.parametrize(("settings", "words"), read_yaml(DATA / "refused.yaml"))
def test_settings_that_are_refused(settings, words):
    with pytest.raises(ValidationError) as caught:
        critic_of(settings)
    assert words in str(caught.value)


# Laws. `SETTINGS` has every matcher of the tables, alone and inside one and two composites.


def nested(settings: dict) -> list[dict]:
    once = {"kind": "any_of", "of": [settings, {"kind": "range", "min": 0}]}
    return [settings, once, {"kind": "any_of", "of": [once, settings]}]


FREE = [
    {"kind": "exact"},
    {"kind": "exact", "cast": True},
    {"kind": "numeric"},
    {"kind": "numeric", "cast": True, "tolerance": 1, "rel_tolerance": 1e300, "cutoff": 1e308},
    {"kind": "numeric", "tolerance": 0.5, "cutoff": 10**400},
    {"kind": "numeric", "value_range": [-1.7e308, 1.7e308]},
    {"kind": "numeric", "value_range": [0, 5e-324]},
    {"kind": "datetime", "tolerance": 5, "cutoff": 1e12, "assume_zone": "Asia/Tokyo", "formats": ["%H:%M%z", "%Y %j"]},
    *({"kind": "similar", "metric": metric} for metric in METRICS),
    {"kind": "json_similar"},
]
CRITICS = [critic_of(form) for settings in (*FREE, *(table["critic"] for table in TABLES)) for form in nested(settings)]


@given(JSON, JSON)
def test_every_value_is_compared_within_bounds(actual, expected):
    for critic in CRITICS:
        match = critic.match(actual, expected)
        assert 0.0 <= match.value <= 1.0
        assert bool(match.note) is not match.passed
        match.note.encode()


HUGE = 10**400
EDGES = [
    ({"kind": "numeric", "tolerance": 1, "cutoff": HUGE}, 7, 5, 1.0),
    ({"kind": "numeric", "tolerance": 1, "cutoff": 2 * HUGE + 1}, 1, HUGE + 2, 0.5),
    ({"kind": "numeric", "tolerance": 1}, HUGE, HUGE + 2, 0.0),
    ({"kind": "numeric", "tolerance": 1}, HUGE, HUGE + 1, 1.0),
    ({"kind": "numeric", "tolerance": 1}, HUGE, 0.5, 0.0),
    ({"kind": "numeric", "rel_tolerance": 0.5}, HUGE, 2 * HUGE, 1.0),
    ({"kind": "numeric", "value_range": [-HUGE, HUGE]}, 0, HUGE, 0.5),
    ({"kind": "numeric", "value_range": [-1.7e308, 1.7e308]}, 1.7e308, -1.7e308, 0.0),
    ({"kind": "numeric"}, math.inf, math.inf, 1.0),
    ({"kind": "numeric", "tolerance": 1e308}, math.inf, 1, 0.0),
    ({"kind": "numeric"}, math.nan, math.nan, 0.0),
    ({"kind": "range", "min": 0}, math.nan, None, 0.0),
    ({"kind": "range", "min": 0}, HUGE, None, 1.0),
    ({"kind": "range", "max": HUGE}, 1e308, None, 1.0),
    ({"kind": "exact", "cast": True}, "9" * 5_000, 9, 0.0),
    ({"kind": "exact", "cast": True}, "1e400", math.inf, 0.0),
    ({"kind": "json_similar"}, HUGE, 2 * HUGE, 0.5),
    ({"kind": "json_similar"}, HUGE, 1.5, 0.0),
    ({"kind": "json_similar"}, HUGE, math.inf, 0.0),
    ({"kind": "json_similar"}, HUGE, math.nan, 0.0),
    ({"kind": "json_similar"}, 1e308, -1e308, 0.0),
    ({"kind": "json_similar"}, math.inf, math.inf, 1.0),
    ({"kind": "json_similar"}, math.nan, math.nan, 0.0),
    ({"kind": "json_similar"}, 1, -3, 0.0),
]


@pytest.mark.parametrize(("settings", "actual", "expected", "value"), EDGES, ids=range(len(EDGES)))
def test_the_edges_of_numbers(settings, actual, expected, value):
    assert critic_of(settings).match(actual, expected).value == pytest.approx(value, rel=1e-12)


@given(JSON.filter(without_nan))
def test_a_value_is_exactly_like_itself(value):
    either = AnyOf(of=[{"kind": "range", "min": 0}, {"kind": "exact"}])
    similar = [Similar(metric=metric) for metric in METRICS]
    for critic in (Exact(), Exact(cast=True), JsonSimilar(), either, Numeric(), DateTime(), *similar):
        assert critic.match(value, value) == Match(1.0, True)


@given(JSON, JSON)
def test_comparison_by_value_is_symmetric(a, b):
    for critic in (Exact(), Exact(cast=True), JsonSimilar(), Similar()):
        assert critic.match(a, b).value == critic.match(b, a).value


@given(TEXTS, TEXTS)
def test_text_similarity_is_symmetric_to_the_last_digit(a, b):
    assert cosine(a, b) == cosine(b, a)
    assert arcade_cosine(a, b) == arcade_cosine(b, a)


@given(st.permutations(["to", "be", "or", "not", "to", "be", "3", "漢"]))
def test_the_order_of_words_does_not_change_the_cosine(words):
    assert cosine(" ".join(words), "to be or not to be 漢 3") == 1.0
    assert cosine(" ".join(words), "to be 4") == cosine("to be or not to be 3 漢", "4 be to")


@given(st.decimals(-1000, 1000, places=3), st.decimals(0, 10, places=3))
def test_a_number_as_far_off_as_the_tolerance_as_written_passes(expected, tolerance):
    critic = Numeric(value=float(expected), tolerance=float(tolerance))
    beyond = tolerance + type(tolerance)("0.001")
    assert critic.match(float(expected + tolerance)).passed
    assert critic.match(float(expected - tolerance)).passed
    assert not critic.match(float(expected + beyond)).passed
    assert not critic.match(float(expected - beyond)).passed


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_nearer_number_never_scores_less(a, b):
    near, far = sorted((a, b))
    for critic in (Numeric(value=0, tolerance=3, cutoff=1e5), Numeric(value=0, value_range=[0, 1e5]), Numeric(value=0)):
        assert critic.match(near).value >= critic.match(far).value


DEEP, SAME, OTHER = deep(10_000, 1), deep(10_000, 1), deep(10_000, "x")  # ten times as deep as Python calls itself
ONE_EACH = {critic.kind: critic for critic in reversed(CRITICS)}


@pytest.mark.parametrize("kind", ONE_EACH)
def test_no_depth_is_too_deep(kind):
    critic = ONE_EACH[kind]
    for actual, expected in ((DEEP, SAME), (DEEP, OTHER), (DEEP, 1), ("2026-05-01", DEEP)):
        assert 0.0 <= critic.compare(actual, expected).value <= 1.0


def test_deep_values_are_told_apart():
    assert Exact().match(DEEP, SAME).passed
    assert not Exact().match(DEEP, OTHER).passed
    assert JsonSimilar().match(DEEP, SAME).value == 1.0
    assert JsonSimilar().match(DEEP, OTHER).value == 0.0


# The expected value: the matcher's own, else that from outside.


def test_an_own_value_comes_before_the_one_from_outside_even_if_null():
    assert Exact(value=None).match(None, 5).passed
    assert not Exact(value=None).match(5, 5).passed
    assert Exact().match(5, 5).passed


def test_in_any_of_each_matcher_takes_its_own_value_else_the_one_from_outside():
    either = AnyOf(
        of=[{"kind": "exact", "value": "none"}, {"kind": "any_of", "of": [{"kind": "numeric", "tolerance": 1}]}]
    )
    assert [either.match(actual, 5).passed for actual in ("none", 6, 7)] == [True, True, False]


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"kind": "exact"}, True),
        ({"kind": "exact", "value": None}, False),
        ({"kind": "any_of", "of": [{"kind": "present"}, {"kind": "similar"}]}, True),
        ({"kind": "any_of", "of": [{"kind": "similar", "value": "a"}]}, False),
    ],
)
def test_a_matcher_says_whether_it_needs_a_value_from_outside(settings, wanted):
    assert critic_of(settings).wants_expected is wanted


# Caps: over them nothing is said, neither yes nor no.


@pytest.mark.parametrize("metric", METRICS)
def test_texts_over_the_cap_are_compared_only_if_equal(metric):
    critic = Similar(metric=metric)
    assert isinstance(critic.match("ab " * 1_667, "a"), OpenComparison)
    assert isinstance(critic.match("a", ["abcd"] * 1_001), OpenComparison)
    assert isinstance(critic.match("x" * 5_000, "y" * 5_000), Match)
    assert critic.match("x" * 5_001, "x" * 5_001) == Match(1.0, True)


def test_trees_with_strings_over_the_cap_are_compared_only_where_these_are_equal():
    long = "x" * 5_001
    assert JsonSimilar().match({"a": long, "b": 1}, {"a": long, "b": 2}).value == 0.75
    assert JsonSimilar().match([long, 1], [long, 1]).value == 1.0
    assert JsonSimilar().match([long, 1], [1, 1]).value == 0.5
    assert isinstance(JsonSimilar().match([long, 1], ["x", 1]), OpenComparison)


def test_patterns_read_texts_up_to_their_cap():
    assert Pattern(pattern="a*").match("a" * 100_000).passed
    assert isinstance(Pattern(pattern="a*").match("a" * 100_001), OpenComparison)


def test_a_pattern_that_is_large_when_compiled_reads_less():
    costly = Pattern(pattern="(?:a{1,100}){1,100}")
    assert costly.match("a" * 2_000).passed
    assert isinstance(costly.match("a" * 2_001), OpenComparison)


def test_any_of_says_nothing_where_the_matcher_that_could_pass_says_nothing():
    either = AnyOf(of=[{"kind": "exact", "value": "b"}, {"kind": "similar", "value": "a"}])
    assert isinstance(either.match("x" * 5_001), OpenComparison)
    assert either.match("b") == Match(1.0, True)
    wide = AnyOf(of=[{"kind": "similar", "value": "a"}, {"kind": "present"}])
    assert wide.match("x" * 5_001) == Match(1.0, True)


# Patterns.


def test_time_is_linear_where_backtracking_is_exponential():
    assert not compile_regex("(a+)+").matches("a" * 99_999 + "b")
    assert not compile_regex("(?:a|aa)+b", search=True).matches("a" * 100_000)


def test_a_lone_surrogate_matches_nothing_and_is_no_pattern():
    assert not compile_regex("(?s).*").matches("\ud800")
    with pytest.raises(ValueError, match="not a regular expression"):
        compile_regex("\ud800")


# Defects reproduced in other scorers, with what is right.


@pytest.mark.parametrize(("settings", "actual", "words"), read_yaml(DATA / "notes.yaml"))
def test_a_mismatch_says_why(settings, actual, words):
    assert words in critic_of(settings).match(actual).note

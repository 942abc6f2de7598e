"""Optimal assignment and the longest run, against trying everything; and short ways lead to where the long ones do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.alignment.assignment import align, align_in_order
from service.core.alignment.chain import find_fullest, find_longest_chain
from service.core.alignment.matching import assign
from service.core.case import Case
from service.core.checks import WHOLE
from service.core.criterion_results import fold_criterion
from service.core.expectations.expectation import Expectation
from service.core.outcome import PERFECT, Errored, Outcome, Scored, Skipped
from service.core.scores import fold_step
from service.intake.reading import read_trace
from service.registry import Registry
from tests.bulk import examples

TRIES = settings(max_examples=examples(50), deadline=None, derandomize=True)
FEW = st.sampled_from([0.0, 0.0, 1.0, 2.0])
"""Gains with many ties."""
ANY = st.floats(-10, 10)


@st.composite
def matrices(draw: st.DrawFn) -> list[list[float]]:
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    entries = draw(st.sampled_from([FEW, ANY]))
    return [draw(st.lists(entries, min_size=columns, max_size=columns)) for _ in range(rows)]


def best(gain: list[list[float]]) -> float:
    """The greatest total of any assignment, by trying all of them."""
    rows, columns = len(gain), len(gain[0])
    if rows > columns:
        return best([[gain[i][j] for i in range(rows)] for j in range(columns)])
    return max(sum(gain[i][j] for i, j in enumerate(chosen)) for chosen in permutations(range(columns), rows))


@TRIES
@given(matrices())
def test_no_assignment_gains_more_and_each_row_and_column_is_taken_once(gain):
    pairs = assign(gain)
    assert sum(gain[i][j] for i, j in pairs) == pytest.approx(best(gain), abs=1e-6)
    rows, columns = [i for i, _ in pairs], [j for _, j in pairs]
    assert len(pairs) == min(len(gain), len(gain[0]))
    assert rows == sorted(set(rows))
    assert len(set(columns)) == len(columns)
    assert set(rows) <= set(range(len(gain)))
    assert set(columns) <= set(range(len(gain[0])))


@pytest.mark.parametrize(
    ("gain", "pairs"),
    [
        ([], []),
        ([[], []], []),
        ([[5.0]], [(0, 0)]),
        ([[0.0, 0.0, 0.0]], [(0, 0)]),
        ([[0.0], [1.0], [1.0]], [(1, 0)]),
        ([[1.0, 1.0], [1.0, 1.0]], [(0, 0), (1, 1)]),
        ([[2.0, 1.0], [2.0, 0.0]], [(0, 1), (1, 0)]),  # greedily it would be 2 + 0
        ([[1.0] * 5] * 5, [(n, n) for n in range(5)]),
        ([[1.0] * 4] * 3, [(0, 0), (1, 1), (2, 2)]),
    ],
)
def test_ties_follow_the_order_of_writing(gain, pairs):
    assert assign(gain) == pairs


def test_a_large_problem():
    """Every row gains most in a column of its own, but only just: 500 rows moved by 7."""
    gain = [[1.0 + ((i + 7) % 500 == j) * 0.5 for j in range(500)] for i in range(500)]
    assert assign(gain) == [(i, (i + 7) % 500) for i in range(500)]


# Chains and sets.

NAMES = st.lists(st.sampled_from("abc"), max_size=6)


def brute(positions: list[list[int]], calls: int, fits: Any) -> int:
    """The longest chain by trying everything."""

    def best(place: int, start: int) -> int:
        if place == len(positions):
            return 0
        ends = range(start, calls + 1)
        return max(matched(positions[place], list(range(start, end)), fits) + best(place + 1, end) for end in ends)

    return best(0, 0)


def matched(expected: list[int], calls: list[int], fits: Any) -> int:
    if not expected:
        return 0
    first, rest = expected[0], expected[1:]
    without = matched(rest, calls, fits)
    taken = [1 + matched(rest, [c for c in calls if c != call], fits) for call in calls if fits(first, call)]
    return max([without, *taken])


@given(NAMES, NAMES, st.sets(st.integers(0, 5)))
def test_a_chain_is_as_long_as_can_be(made: list[str], expected: list[str], joins: set[int]) -> None:
    positions: list[list[int]] = []
    for n in range(len(expected)):
        if positions and n in joins:
            positions[-1].append(n)
        else:
            positions.append([n])

    def fits(wanted: int, call: int) -> bool:
        return expected[wanted] == made[call]

    chain = find_longest_chain(positions, range(len(made)), fits)
    assert len(chain) == brute(positions, len(made), fits)
    assert all(fits(*pair) for pair in chain.items())
    assert len(set(chain.values())) == len(chain)
    place = {n: p for p, group in enumerate(positions) for n in group}
    in_order = sorted(chain, key=chain.__getitem__)
    assert [place[n] for n in in_order] == sorted(place[n] for n in in_order)


@given(st.lists(st.sets(st.integers(0, 4)), max_size=5))
def test_a_set_is_as_full_as_can_be(rows: list[set[int]]) -> None:
    held = find_fullest(range(len(rows)), range(5), lambda expected, call: call in rows[expected])
    assert len(held) == matched(list(range(len(rows))), list(range(5)), lambda e, c: c in rows[e])
    assert all(call in rows[expected] for expected, call in held.items())
    assert len(set(held.values())) == len(held)


# Short ways.

RUBRIC = Registry().find("four_step")

OUTCOMES: Sequence[Outcome] = (
    PERFECT,
    Scored(0.5, True),
    Scored(0.0, False),
    Skipped("not_applicable", "nothing to look at"),
    Skipped("not_captured", "left out"),
    Skipped("not_captured", "left out", open=True),
    Skipped("blocked", "by another"),
    Skipped("unread", "no JSON"),
    Errored("timeout", "too late"),
)


def copy_outcome(outcome: Outcome) -> Outcome:
    """An equal outcome that is not the shared one."""
    return Scored(outcome.value, outcome.passed) if type(outcome) is Scored else outcome


@given(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=5), st.sampled_from(RUBRIC.compiled_criteria))
def test_shared_outcomes_fold_as_equal_ones_do(outcomes: list[Outcome], criterion: Any) -> None:
    # A copy of the criterion has no fold that was kept.
    long_way = fold_criterion(replace(criterion), [copy_outcome(one) for one in outcomes])
    assert fold_criterion(criterion, outcomes)[1:] == long_way[1:]


@given(st.lists(st.tuples(st.sampled_from(RUBRIC.compiled_criteria), st.sampled_from(OUTCOMES)), max_size=6))
def test_steps_fold_the_same_whatever_came_before(pairs: Any) -> None:
    fresh = RUBRIC.model_validate(RUBRIC.model_dump(exclude_unset=True))
    assert fold_step(pairs, RUBRIC) == fold_step([(one, copy_outcome(outcome)) for one, outcome in pairs], fresh)


CALLS = st.lists(
    st.tuples(st.sampled_from("fghi"), st.integers(0, 2), st.booleans()),
    min_size=1,
    max_size=4,
    unique_by=lambda one: one[0],
)
"""Of distinct tools: of equal calls it is chance which stands for which."""


@given(CALLS, st.data())
def test_calls_of_distinct_tools_align_as_by_the_best_assignment(calls: Any, data: Any) -> None:
    due = [(name, n if same else n + 10) for name, n, same in calls]
    events = [{"call": {"name": name, "arguments": {"n": n}}} for name, n, _ in calls]
    trace = read_trace({"format": "callgrade", "events": [{"user": "Do it."}, *events]})
    required = data.draw(st.lists(st.booleans(), min_size=len(due), max_size=len(due)))
    wanted = [
        {"tool": name, "args": {"n": n}, "optional": not must} for (name, n), must in zip(due, required, strict=True)
    ]

    def build() -> Case:
        return Case(trace, Expectation.model_validate({"calls": wanted}), RUBRIC.matching)

    found = align_in_order(build())
    if found is not None:
        assert found.pairs == align(build()).pairs


def test_the_short_way_is_taken() -> None:
    calls = [{"call": {"name": name, "arguments": {}}} for name in ("f", "g")]
    trace = read_trace({"format": "callgrade", "events": [{"user": "Do it."}, *calls]})
    expected = Expectation.model_validate({"calls": [{"tool": "f", "args": {"n": 1}}, {"tool": "g"}]})
    assert align_in_order(Case(trace, expected, RUBRIC.matching)) is not None


SILENT = [
    criterion
    for rubric in Registry()
    for criterion in rubric.compiled_criteria
    if criterion.check.idle_outcome is not None
]
EXPECTATIONS: Sequence[Any] = (
    None,
    {"calls": "none"},
    {"calls": [{"tool": "f", "args": {"n": 1}}]},
    {"unordered": [{"tool": "f"}], "turns": [{"turn": 1, "calls": "some"}]},
    {"ordered": [{"tool": "f", "result": 1}], "counts": {"f": 1}, "disallowed": [{"tool": "g"}]},
    {"answer": "Done.", "said": "Done.", "output": None, "state": {"final": {}}},
)


@pytest.mark.parametrize("expected", EXPECTATIONS, ids=str)
@pytest.mark.parametrize("calls", [0, 2])
def test_a_check_that_is_passed_over_would_have_nothing_to_say(expected: Any, calls: int) -> None:
    made = [{"call": {"name": "f", "arguments": {"n": n}}, "result": n} for n in range(calls)]
    trace = read_trace({"format": "callgrade", "events": [{"user": "Do it."}, *made, {"assistant": "Done."}]})
    expectation = None if expected is None else Expectation.model_validate(expected)
    for criterion in SILENT:
        case = Case(trace, expectation, RUBRIC.matching)
        if not case.other_aspects & criterion.reads:
            assert list(criterion.check.look(case)) == [(WHOLE, criterion.check.idle_outcome)], criterion.id


@pytest.mark.parametrize("place", range(4))
def test_a_call_that_nobody_expects_moves_no_pair(place: int) -> None:
    """Both calls of `c` fit as badly, so their order decides."""
    events: list[Any] = [
        {"call": {"name": name, "arguments": args}} for name, args in [("a", {}), ("c", {"x": 1}), ("c", {"x": 2})]
    ]
    events.insert(place, {"call": {"name": "ghost", "arguments": {}}})
    trace = read_trace({"format": "callgrade", "events": events})
    wanted = {
        "calls": [{"tool": "a", "args": {}}, {"tool": "c", "args": {}, "optional": True}],
        "optional": [{"tool": "b"}],
    }
    case = Case(trace, Expectation.model_validate(wanted), RUBRIC.matching)
    made = [trace.steps[pair.step].call.arguments for pair in align(case).pairs]
    assert made == [{}, {"x": 2}]

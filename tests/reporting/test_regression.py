"""The gate on a pull request: what has regressed, what noise explains, what is open."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from service import InputError, Report
from service.reporting.summaries import judge_reports
from tests.bulk import examples
from tests.reporting.report_sets import report_of

CASES = 200
RUNS = examples(10)
"""200 in `make chaos`."""

PASSES = report_of({"id": "x", "expected": {"calls": [{"tool": "refund"}]}, "calls": ["refund"]})
FAILS = report_of({"id": "x", "expected": {"calls": [{"tool": "refund"}]}, "calls": ["void"]})
UNDECIDED = replace(PASSES, verdict="undecided")
EMPTY = replace(PASSES, verdict="not_applicable")
BY_LETTER = {"p": PASSES, "f": FAILS, "a": UNDECIDED, "n": EMPTY}


def run(letters: Iterable[str]) -> list[Report]:
    """A report for each letter: pass, fail, undecided, nothing applies; `-` is a case that was not scored."""
    return [replace(BY_LETTER[one], trace_id=f"c{n}") for n, one in enumerate(letters) if one != "-"]


@pytest.mark.parametrize(
    ("a", "b", "status"),
    [
        ("p" * 20, "p" * 20, "held"),
        ("p" * 20, "p" * 10 + "f" * 10, "regressed"),
        ("p" * 20, "p" * 19 + "f", "held"),
        ("f" * 20, "p" * 20, "held"),
        ("p" * 20, "a" * 20, "undecided"),
        ("a" * 20, "f" * 20, "undecided"),
        ("p" * 20, "p" * 19 + "a", "held"),
        ("p" * 20, "p" * 10 + "-" * 10, "undecided"),
        ("p" * 20, "p" * 19 + "-", "held"),
        ("a" * 20, "a" * 20, "undecided"),
        ("p" * 20, "p" * 10 + "n" * 10, "undecided"),
        ("p" * 10 + "n" * 10, "p" * 10 + "n" * 10, "held"),
    ],
)
def test_what_is_open_is_taken_both_ways(a: str, b: str, status: str):
    assert judge_reports(run(a), run(b)).status == status


def test_undecided_verdicts_without_a_fault_can_be_left_out():
    assert judge_reports(run("p" * 20 + "a" * 20), run("p" * 20 + "a" * 20), allow_undecided=True).status == "held"
    assert judge_reports(run("p" * 20 + "a" * 20), run("f" * 20 + "a" * 20), allow_undecided=True).status == "regressed"


def test_a_run_under_another_rubric_decides_nothing():
    other = [replace(one, rubric=replace(one.rubric, hash="0" * 64)) for one in run("p" * 20)]
    assert judge_reports(run("p" * 20), other).status == "undecided"


def test_a_run_without_the_judges_of_the_other_decides_nothing():
    judged = [replace(one, provenance=replace(one.provenance, replies=1)) for one in run("p" * 20)]
    code = [replace(one, scope="code") for one in run("p" * 20)]
    assert judge_reports(judged, code).status == "undecided"
    assert judge_reports(code, code).status == judge_reports(code, judged).status == "held"


def test_a_criterion_can_be_gated_and_an_unknown_one_is_an_error():
    a, b = run("p" * 20), run("f" * 20)
    assert judge_reports(a, b, ["tool_name", "decide"]).status == "regressed"
    assert judge_reports(a, b, ["decide"]).status == "held"
    with pytest.raises(InputError, match="no number 'nothing' to compare"):
        judge_reports(a, b, ["nothing"])


Chances = Callable[[random.Random], list[float]]


def flaky(rng: random.Random) -> list[float]:
    """A set of which one case in five comes out one way or the other, and the others always the same."""
    return [rng.choice([0.3, 0.5, 0.7]) if rng.random() < 0.2 else float(rng.random() < 0.85) for _ in range(CASES)]


def noisy(rng: random.Random) -> list[float]:
    """A set of which every case passes with some chance of its own."""
    return [rng.betavariate(4, 1) for _ in range(CASES)]


def draw(chances: list[float], rng: random.Random, trials: int) -> list[Report]:
    drawn = [(n, trial, rng.random() < chance) for n, chance in enumerate(chances) for trial in range(trials)]
    return [
        replace(PASSES if good else FAILS, trace_id=f"c{n}", tags={"trial": str(trial)} if trials > 1 else {})
        for n, trial, good in drawn
    ]


def drop(chances: list[float], rng: random.Random) -> list[float]:
    """Ten points less: as many cases as that takes break for good."""
    broken = list(chances)
    order = rng.sample(range(len(chances)), len(chances))
    while sum(chances) - sum(broken) < 0.1 * CASES:
        broken[order.pop()] = 0.0
    return broken


def count_alarms(chances: Chances, *, dropped: bool, trials: int) -> int:
    found = 0
    for seed in range(RUNS):
        rng = random.Random(seed)  # noqa: S311 (a draw, no secret)
        before = chances(rng)
        after = drop(before, rng) if dropped else before
        found += judge_reports(draw(before, rng, trials), draw(after, rng, trials)).status == "regressed"
    return found


SETS = pytest.mark.parametrize(
    ("chances", "trials"), [(flaky, 1), (noisy, 1), (noisy, 3)], ids=["flaky", "noisy", "x3"]
)


@pytest.mark.whole
@SETS
def test_noise_alone_rarely_fails(chances: Chances, trials: int):
    assert count_alarms(chances, dropped=False, trials=trials) <= max(1, 0.05 * RUNS)


@pytest.mark.whole
@pytest.mark.parametrize(("chances", "trials"), [(flaky, 1), (noisy, 3)], ids=["flaky", "x3"])
def test_a_drop_of_ten_points_fails(chances: Chances, trials: int):
    assert count_alarms(chances, dropped=True, trials=trials) >= 0.9 * RUNS

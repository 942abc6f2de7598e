"""The gate on a pull request: what has regressed, what noise explains, what is open."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service import InputError, Report, conclude
from service.core.judging.judged_outcomes import MixedScore
from service.core.judging.notes import JudgeReply
from service.core.judging.prompts import Usage
from service.core.judging.replies import Judgement
from service.core.report import OpenOutcome
from service.engine import Engine
from service.reading.request import read_request
from service.registry import Registry
from service.reporting.regression import judge_reports
from tests.bulk import examples
from tests.reporting.report_sets import report_of

CASES = 200
RUNS = examples(10)
"""200 in `make chaos`."""


def judged(value: float) -> Report:
    """A trace whose only criterion is a judge's, which gives this value."""
    judge = {
        "id": "taste",
        "level": "trace",
        "question": "Is it good?",
        "scale": {"yes": {"value": 1}, "no": {"value": 0}},
    }
    asked = {"id": "good", "stage": "integrate", "must_pass": True, "check": {"kind": "judge", "judge": "taste"}}
    trace = {"format": "callgrade", "events": [{"user": "Hi"}, {"assistant": "Hello"}]}
    plan = Engine(Registry()).plan(
        read_request({"trace": trace, "rubric": {"id": "r", "criteria": [asked], "judges": [judge]}})
    )
    reply = JudgeReply(Judgement("yes" if value else "no", value, "so it is"), "m", "m", "miss", Usage(1, 1, None))
    return conclude(plan, {ask.key: (reply,) for ask in plan.asks}, mode="live")


PASSES = report_of({"id": "x", "expected": {"calls": [{"tool": "refund"}]}, "calls": ["refund"]})
FAILS = report_of({"id": "x", "expected": {"calls": [{"tool": "refund"}]}, "calls": ["void"]})
OPEN = [OpenOutcome("tool_name", "select", 0, 0, None, "skipped", "unread", "no such form", decides=True)]
BY_LETTER = {
    "p": PASSES,
    "f": FAILS,
    "a": replace(PASSES, verdict="undecided"),
    "o": replace(PASSES, verdict="undecided", open=tuple(OPEN)),
    "n": replace(PASSES, verdict="not_applicable", criteria=()),
    "P": judged(1.0),
    "F": judged(0.0),
    "A": replace(judged(1.0), verdict="undecided"),
}


def run(letters: Iterable[str]) -> list[Report]:
    """A report for each letter: pass, fail, undecided, open, nothing applies, in capitals by a judge; `-` was not scored."""
    return [replace(BY_LETTER[one], trace_id=f"c{n}") for n, one in enumerate(letters) if one != "-"]


BOTH_WAYS = {
    "within noise": "20p:20p 20P:19P+1F 20f:20p 20f:20f 20P:19P+1A 20P:19P+1- 10p+10n:10p+10n",
    "regressed": "20p:10p+10f 20p:19p+1f 20P:10P+10F",
    "undecided": "20p:20a 20A:20F 20p:19p+1o 20p:10p+10- 20p:19p+1- 20a:20a 20p:10p+10n",
}
"""What is said of runs, each as FIRST:SECOND: how many reports of which letter."""


def spell(text: str) -> str:
    return "".join(int(part[:-1]) * part[-1] for part in text.split("+"))


@pytest.mark.parametrize("status", BOTH_WAYS)
def test_what_is_open_is_taken_both_ways(status: str):
    pairs = [pair.split(":") for pair in BOTH_WAYS[status].split()]
    found = {f"{a}:{b}": judge_reports(run(spell(a)), run(spell(b))).status for a, b in pairs}
    assert found == dict.fromkeys(BOTH_WAYS[status].split(), status)


UNKNOWN_CALL = replace(FAILS, verdict="undecided", open=tuple(OPEN))
"""Undecided, and its only criterion fails by code."""
UNCHECKED = replace(PASSES, verdict="undecided", criteria=(), steps=())
"""Undecided, and there is nothing that code could check: no call was made, say."""


@pytest.mark.parametrize(
    ("a", "b", "on", "statuses"),
    [
        (BY_LETTER["a"], UNKNOWN_CALL, "tool_name", ("regressed", "regressed")),
        (BY_LETTER["a"], FAILS, "passed", ("regressed", "regressed")),
        (PASSES, UNKNOWN_CALL, "tool_name", ("regressed", "regressed")),
        (UNCHECKED, FAILS, "passed", ("regressed", "regressed")),
        (UNCHECKED, PASSES, "passed", ("within noise", "within noise")),
        (replace(UNCHECKED, verdict="fail"), FAILS, "passed", ("within noise", "within noise")),
        (PASSES, UNCHECKED, "tool_name", ("undecided", "undecided")),
        (replace(PASSES, verdict="undecided"), UNCHECKED, "passed", ("undecided", "undecided")),
        (PASSES, replace(UNCHECKED, verdict="pass"), "tool_name", ("within noise", "within noise")),
        (PASSES, BY_LETTER["o"], "tool_name", ("undecided", "undecided")),
    ],
    ids=[
        "undecided before and after",
        "undecided before",
        "undecided now",
        "first checked now",
        "first checked and passed now",
        "first reached now",
        "dropped",
        "dropped where it was undecided",
        "rightly dropped",
        "unread",
    ],
)
def test_an_undecided_verdict_hides_no_failure_by_code(a: Report, b: Report, on: str, statuses: tuple[str, str]):
    others = run("p" * 20)
    gates = (judge_reports([a, *others], [b, *others], [on], allow_undecided=allowed) for allowed in (False, True))
    assert tuple(gate.status for gate in gates) == statuses


def test_a_case_that_is_missing_is_no_undecided_verdict_to_forgive():
    before = [replace(PASSES, verdict="undecided"), *run("p" * 20)]
    gate = judge_reports(before, before[1:], allow_undecided=True)
    assert (gate.status, [one.why for one in gate.proved]) == ("undecided", ["missing in the second run"])


def proved(a: list[Report], b: list[Report], *names: str) -> list[tuple[str, str, str]]:
    return [(one.case, one.criterion, one.status) for one in judge_reports(a, b, names).proved]


def test_what_code_passed_and_fails_now_is_named_with_its_trace():
    a, b = run("p" * 20), run("p" * 18 + "fp")
    assert proved(a, b) == [("c18", "tool_name", "regressed")]
    assert judge_reports(a, b).proved[0].why.startswith("passed before and fails now: ")
    assert proved(a, b, "select") == proved(a, b, "score") == proved(a, b, "tool_name") == proved(a, b)
    assert proved(a, b, "decide") == proved(b, b) == proved(b, a) == proved(run("P" * 20), run("F" * 20)) == []
    assert proved(a, run("p" * 18 + "o-")) == [("c18", "tool_name", "undecided"), ("c19", "", "undecided")]


def test_a_gated_criterion_that_no_longer_applies_to_a_failing_case_is_undecided():
    gone = replace(FAILS, criteria=tuple(one for one in FAILS.criteria if one.id == "tool_name"), steps=())
    others = [one.id for one in PASSES.criteria if one.id != "tool_name" and one.coverage is not None]
    for name in others:
        assert {status for *_, status in proved([PASSES], [gone], name)} <= {"undecided"}
    assert any(proved([PASSES], [gone], name) for name in others)


def test_a_score_that_fails_without_a_judge_is_a_regression_too():
    low = replace(PASSES, verdict="fail")
    assert proved([PASSES], [low]) == [("x", "", "regressed")]
    assert proved([PASSES], [low], "decide") == []


def test_a_part_in_words_that_a_judge_fails_is_left_to_statistics():
    wrong = {"code": (0.0, False), "judge": (1.0, True)}
    mixed = {
        name: MixedScore(value, False, judges=(), calibrations=(), code_passed=passed)
        for name, (value, passed) in wrong.items()
    }
    found = {
        name: replace(
            FAILS,
            criteria=tuple(replace(c, outcomes=()) for c in FAILS.criteria),
            steps=(replace(FAILS.steps[0], outcomes={"tool_name": outcome}),),
        )
        for name, outcome in mixed.items()
    }
    assert proved([PASSES], [found["code"]]) == [("x", "tool_name", "regressed")]
    assert proved([PASSES], [found["judge"]]) == []


def test_repeated_trials_are_left_to_statistics():
    a, b = ([replace(one, tags={"trial": "1"}) for one in run(letters)] for letters in ("p" * 20, "p" * 19 + "f"))
    assert judge_reports(a, b).status == "within noise"


CASES_BEFORE = st.lists(st.sampled_from("pfPFo"), min_size=1, max_size=30).filter(lambda cases: set(cases) != {"o"})


@settings(max_examples=examples(60), deadline=None)
@given(before=CASES_BEFORE, data=st.data())
def test_a_case_that_is_lost_or_open_holds_nothing(before: list[str], data: st.DataObject):
    """Taking knowledge of the second run away, of a case that the first had decided, never lets a gate pass that did not."""
    after = ["PF"[data.draw(st.booleans())] if one in "PF" else "pf"[data.draw(st.booleans())] for one in before]
    lost = data.draw(st.sets(st.sampled_from([n for n, one in enumerate(before) if one != "o"])))
    less = [
        one if n not in lost else "A" if one in "PF" else data.draw(st.sampled_from("o-" if n else "o"))
        for n, one in enumerate(after)
    ]
    whole, partial = (judge_reports(run(before), run(letters)).status for letters in (after, less))
    assert whole == "within noise" or partial != "within noise"


def test_undecided_verdicts_without_a_fault_can_be_left_out():
    assert (
        judge_reports(run("p" * 20 + "a" * 20), run("p" * 20 + "a" * 20), allow_undecided=True).status == "within noise"
    )
    assert judge_reports(run("p" * 20 + "a" * 20), run("f" * 20 + "a" * 20), allow_undecided=True).status == "regressed"


def test_a_run_under_another_rubric_decides_nothing():
    other = [replace(one, rubric=replace(one.rubric, hash="0" * 64)) for one in run("p" * 20)]
    assert judge_reports(run("p" * 20), other).status == "undecided"


def test_a_run_without_the_judges_of_the_other_decides_nothing():
    judged = [replace(one, provenance=replace(one.provenance, replies=1)) for one in run("p" * 20)]
    code = [replace(one, scope="code") for one in run("p" * 20)]
    assert judge_reports(judged, code).status == "undecided"
    assert judge_reports(code, code).status == judge_reports(code, judged).status == "within noise"


def test_a_criterion_can_be_gated_and_an_unknown_one_is_an_error():
    a, b = run("p" * 20), run("f" * 20)
    assert judge_reports(a, b, ["tool_name", "decide"]).status == "regressed"
    assert judge_reports(a, b, ["decide"]).status == "within noise"
    with pytest.raises(InputError, match="'nothing' is in no report"):
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
        replace(BY_LETTER["P" if good else "F"], trace_id=f"c{n}", tags={"trial": str(trial)} if trials > 1 else {})
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

"""The budget of work: what goes over it is told with its number, and what is within it comes out as without one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service import InputError, score
from service.core import work_limits
from service.core.alignment.assignment import align
from service.core.alignment.chain import find_fullest, find_longest_chain
from service.core.case import Case
from service.core.expectations.expectation import Expectation
from service.core.gates.tool_name import find_near
from service.core.grounding.reading.values import MAX_TEXT_CHARS
from service.core.grounding.store import MAX_FACTS
from service.core.grounding.texts import MAX_MENTIONS_OF_ALL
from service.core.json.differences import ChangeIndex, JsonChange, PointerPatterns, covers
from service.core.json.values import Contents, equals
from service.core.outcome import Skipped
from service.core.report import Report
from service.core.work_limits import (
    LIMITS,
    MAX_CRITERIA,
    MAX_JUDGES,
    MAX_NAME_CHARS,
    MAX_OUTCOMES,
    MAX_WEIGHED_PAIRS,
    Meter,
    OverBudgetError,
)
from service.intake.reading import read_trace
from service.registry import Registry
from tests.bulk import examples
from tests.core.hostile_bodies import BODIES, call, due, reversed_calls, trace, under
from tests.core.reports import outcomes
from tests.core.test_gates import called
from tests.tables import read_rows

RUBRIC = Registry().find("four_step")
MANY = int(MAX_WEIGHED_PAIRS**0.5) + 50

TRIES = settings(max_examples=examples(40), deadline=None, derandomize=True)


def skips(report: Report) -> list[Skipped]:
    """What was left open because it was too long."""
    return [one for one in outcomes(report) if isinstance(one, Skipped) and one.cause == "too_long"]


def scored(body: dict[str, Any]) -> Report:
    return score({**body, "judges": "off"})


# What is within the budget.


@pytest.mark.parametrize("name", sorted(BODIES))
def test_a_small_body_of_each_kind_is_scored_whole(name):
    assert skips(scored(BODIES[name](12))) == []


# What goes over it.


def test_one_wrong_call_of_many_is_proved_wrong():
    body = reversed_calls(1_100)
    body["trace"]["events"][0] = call("f", {"a": "another"})
    report = scored(body)
    assert skips(report) == []
    assert [step.outcomes["arguments"].value for step in report.steps] == [0.0, *[1.0] * 1_099]


def test_beyond_the_pairs_what_does_not_pass_is_open_and_the_names_are_not():
    report = scored(BODIES["one_tool_and_nothing_right"](MANY))
    reasons = {one.reason for one in skips(report)}
    assert reasons == {f"{MANY} calls of f were expected and {MANY} made, too many to weigh each against each"}
    assert {step.outcomes["tool_name"].value for step in report.steps} == {1.0}
    assert report.missing == ()


def test_a_call_of_a_turn_is_not_taken_by_one_of_any_turn():
    events = [{"user": "1"}, *[call("f", {"a": i}) for i in range(MANY - 1)], {"user": "2"}, call("f", {"a": -1})]
    wanted = [*[due("f", {"a": -2}) for _ in range(MANY - 1)], due("f", {"a": -3}, turn=2)]
    report = scored({"trace": trace(events), "expected": {"calls": wanted}})
    assert report.missing == ()
    assert report.steps[-1].matched == MANY - 1


FORMS = st.sampled_from([{"a": 1}, {"a": 2}, {"a": 3}, {"a": 1, "b": 1}, {}])
WANTED = st.one_of(
    FORMS.map(lambda args: due("f", args)),
    st.just(due("f", {"a": {"kind": "one_of", "values": [1, 2]}})),
    st.just({"any_of": [due("f", {"a": 2}), due("f", {"a": 3})]}),
)


@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(st.lists(FORMS, min_size=18, max_size=20), st.lists(WANTED, min_size=18, max_size=20))
def test_of_many_calls_as_many_pass_as_can(made, wanted):
    """Pairs are too many for weighing each against each, and few enough to know the answer."""
    trace_read = read_trace(trace([{"user": "Do it."}, *[call("f", args) for args in made]]))
    case = Case(trace_read, Expectation.model_validate({"calls": wanted}), RUBRIC.matching)
    found = align(case).pairs
    fullest = find_fullest(range(len(wanted)), range(len(made)), lambda i, j: j in case.find_matching_steps(i))
    assert sum(case.agrees(pair.pattern, case.trace.steps[pair.step]) for pair in found) == len(fullest)
    assert len(found) == min(len(made), len(wanted))


FILLERS = [(call(f"f{n}", {}, result="ok"), due(f"f{n}")) for n in range(20)]


@pytest.mark.parametrize("fillers", [[], FILLERS], ids=["few", "many"])
@pytest.mark.parametrize(("made", "wanted"), read_rows("pairing.yaml"))
def test_what_can_pass_is_paired_so(made, wanted, fillers):
    """With few calls and with many, which are paired in another way."""
    events = [event for event, _ in fillers] + [called(*one) for one in made]
    expected = {"calls": [*wanted, *[one for _, one in fillers]]}
    report = scored({"trace": trace(events), "expected": expected})
    assert (report.failing, report.missing) == ((), ())


def test_many_calls_that_could_stand_for_one_another_are_all_paired():
    calls = [call("a", {"q": n}) for n in range(90)]
    wanted = [due("a", {"q": n}) for n in range(90)] + [due("a", {"q": {"kind": "present"}}, turn=1)] * 90
    report = scored({"trace": trace([{"user": "1"}, *calls, {"user": "2"}, *calls]), "expected": {"calls": wanted}})
    assert (report.verdict, report.missing) == ("pass", ())


OVER = [
    ("texts_to_be_said", 400, "comparisons", 1),
    ("bans_and_calls", 1_000, "outcomes", 1),
    ("a_ban_with_a_long_reason", 1_000, "finding characters", 1),
    ("a_long_name_required", 1_000, "finding characters", 1),
    ("required_by_every_call", 1_000, "comparisons", 1),
    ("trajectory_strict", 1_100, "comparisons", 1),
    ("apple_trajectory", 600, "comparisons", 2),
    ("arcade_compat", 600, "comparisons", 1),
    ("bfcl_ast", 600, "comparisons", 1),
    ("one_place_for_all", 1_200, "comparisons", 1),
]


@pytest.mark.parametrize(("name", "n", "work", "least"), OVER)
def test_a_check_beyond_its_work_is_open_and_says_the_number(name, n, work, least):
    found = skips(scored(BODIES[name](n)))
    assert len(found) >= least
    assert all(work in one.reason and "; at most " in one.reason for one in found)


JUDGES = [{"id": f"j{n}", "level": "step", "question": "?", "scale": {"a": 1, "b": 0}} for n in range(MAX_JUDGES + 1)]


@pytest.mark.parametrize(
    ("rubric", "said"),
    [
        (
            under(*[{"kind": "tool_name"}] * (MAX_CRITERIA + 1)),
            f"/rubric/criteria: {MAX_CRITERIA + 1} criteria; at most {MAX_CRITERIA} are taken",
        ),
        (
            under({"kind": "tool_name"}, judges=JUDGES),
            f"/rubric: {MAX_JUDGES + 1} judges; at most {MAX_JUDGES} come with a rubric",
        ),
    ],
    ids=["criteria", "judges"],
)
def test_a_rubric_beyond_the_limits_is_refused_by_place_and_number(rubric, said):
    with pytest.raises(InputError) as refused:
        scored({"trace": trace([call("f")]), "rubric": rubric})
    assert [str(problem) for problem in refused.value.problems] == [said]


def test_suggestions_are_bounded_in_number_and_length():
    meter = Meter({**LIMITS, "names": 5})
    assert find_near("refund", ["refunds", "x"], meter=meter) == ["refunds"]
    assert find_near("refund", ["refunds"] * 4, meter=meter) == []
    (long_one,) = find_near("refund" + "x" * 1_000, ["refund" + "x" * 2_000])
    assert len(long_one) == MAX_NAME_CHARS


def test_the_limits_grow_with_the_calls_that_were_made():
    small, large = Meter(calls=1), Meter(calls=60_000)
    assert all(large.limits[work] >= small.limits[work] for work in LIMITS)
    with pytest.raises(OverBudgetError, match=r"^50001 outcomes; at most 50000 in one item$"):
        small.spend("outcomes", MAX_OUTCOMES + 1)


def test_the_manual_states_every_limit():
    page = (Path(__file__).parents[2] / "docs" / "verdicts.md").read_text("utf-8")
    table = page.partition("## The budget of an item\n")[2].partition("\n## ")[0]
    stated = {
        int(cells[2]) for line in table.splitlines() if (cells := line.split("|"))[2:] and cells[2].strip().isdigit()
    }
    limits = {
        name: value for name, value in vars(work_limits).items() if name.startswith("MAX_") and isinstance(value, int)
    }
    per_call = {limits.pop(name) for name in list(limits) if name.endswith("_PER_CALL")}
    del limits["MAX_NAME_CHARS"]
    assert stated == {*limits.values(), MAX_FACTS, MAX_MENTIONS_OF_ALL, MAX_TEXT_CHARS}
    assert all(f"{value} for each call" in table for value in per_call)


# Few comparisons give what all of them would.

SCALARS = st.sampled_from([0, 1, 1.0, True, "1", "a", None])
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(st.sampled_from("xy"), SCALARS, max_size=2))


@TRIES
@given(VALUES, VALUES)
def test_equal_values_have_one_number(one, other):
    contents, exact = Contents(), Contents(exact=True)
    assert (contents.number(one) == contents.number(other)) == equals(one, other)
    assert (exact.number(one) == exact.number(other)) == (repr(one) == repr(other) or _sorted(one) == _sorted(other))


def _sorted(value: object) -> str:
    return repr(dict(sorted(value.items()))) if isinstance(value, dict) else repr(value)


@pytest.mark.parametrize("together", [False, True])
def test_a_chain_is_paid_for_as_it_is_looked_for(together: bool):
    """ChangeIndex with one call and places with several: neither may be looked for without end."""
    asked: list[tuple[int, int]] = []
    meter = Meter({**LIMITS, "comparisons": 1_000})
    places = [list(range(100))] if together else [[n] for n in range(100)]
    with pytest.raises(OverBudgetError):
        find_longest_chain(places, range(100), lambda *pair: bool(asked.append(pair)), meter=meter)
    assert len(asked) <= 1_100


PATHS = st.lists(st.sampled_from(["a", "b", "ab", "a!", "0"]), max_size=3).map(
    lambda parts: "".join(f"/{p}" for p in parts)
)


@TRIES
@given(st.lists(PATHS, max_size=6, unique=True), PATHS)
def test_places_find_what_looking_at_all_finds(paths, path):
    changes = [JsonChange("add", one) for one in sorted(paths)]
    touching = [one for one in changes if covers(one.path, path) or covers(path, one.path)]
    assert ChangeIndex(changes).find_touching(path, 10) == sorted(touching, key=lambda one: one.path)


@TRIES
@given(st.lists(PATHS.map(lambda path: path.replace("b", "*")), max_size=5), PATHS)
def test_patterns_find_the_first_that_fits(patterns, path):
    def fits(pattern: str) -> bool:
        one, other = path.split("/"), pattern.split("/")
        return len(one) == len(other) and all(w in ("*", t) for t, w in zip(one, other, strict=True))

    assert PointerPatterns(patterns).find_first(path) == next((one for one in patterns if fits(one)), None)

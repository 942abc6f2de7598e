"""UiPath's evaluators beside the numbers of `tests/core/test_carried_numbers.py`, and the pairing by fit alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service import InputError, score
from service.core.alignment.chain import find_fullest, find_longest_chain
from tests.core.carried_cases import report

STAGES = {"count": "sequence", "order": "sequence", "args": "arguments", "output": "effect"}


def scored(part: str, case: dict[str, Any], *, compat: bool):
    check = {"kind": f"uipath_tool_call_{part}"} | {k: case[k] for k in ("strict", "subset") if k in case}
    criterion = {"id": part, "stage": STAGES[part], "check": check}
    return report(f"uipath_tool_call_{part}", case, compat=compat, criteria=(criterion,))


@pytest.mark.parametrize("count", ["~2", "two", "-1", ">-1", ""])
def test_an_operator_that_there_is_none_of_is_refused(count: str) -> None:
    with pytest.raises(InputError, match="/expected/counts"):
        scored("count", {"made": [], "expected": {"counts": {"x": count}}}, compat=False)


def test_a_result_that_the_trace_lacks_is_not_captured() -> None:
    found = scored("output", {"made": [["f", {}]], "expected": {"calls": [{"tool": "f", "result": "1"}]}}, compat=False)
    assert (found.verdict, found.score) == ("undecided", None)


@pytest.mark.parametrize("part", list(STAGES))
def test_without_its_part_of_the_expectation_it_does_not_apply(part: str) -> None:
    found = scored(part, {"made": [["f"]], "expected": {"answer": "x"}}, compat=False)
    assert found.verdict == "not_applicable"


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


@pytest.mark.parametrize("compat", [True, False])
def test_an_answer_is_an_output_too(compat: bool) -> None:
    trace = {"format": "callgrade", "events": [{"user": "Please."}, {"assistant": '{"a": [1, 2]}'}]}
    rubric = {"extends": "uipath_exact_match", "compat": compat}
    assert score({"rubric": rubric, "trace": trace, "expected": {"output": {"a": [1, 2]}}}).score == 1.0


def test_a_file_that_is_attached_has_no_number() -> None:
    name = "urn:uipath:cas:file:orchestrator:12ab-34"
    trace = {"format": "callgrade", "events": [{"user": "Please."}], "output": {"a": name}}
    check = {"kind": "uipath_exact_match", "target_output_key": "a"}
    rubric = {"id": "x", "compat": True, "criteria": [{"id": "it", "stage": "integrate", "check": check}]}
    found = score({"rubric": rubric, "trace": trace, "expected": {"output": {"a": "text"}}})
    assert (found.verdict, found.score) == ("undecided", None)


# what the call names its tool by (name, id), what is expected, UiPath's number, ours
BY_ID = [
    (("search", None), "search", 1, 1),
    (("search", "t1"), "t1", 1, 1),
    (("search", "t1"), "search", 0, 1),
    (("search", "t 1"), "t_1", 0, 0),
]


@pytest.mark.parametrize("part", list(STAGES))
@pytest.mark.parametrize(("made", "expected", "theirs", "ours"), BY_ID)
def test_a_call_with_an_id_of_its_tool(
    part: str, made: tuple[str, str | None], expected: str, theirs: float, ours: float
) -> None:
    call = {"name": made[0], "arguments": {"x": 1}, "tool_id": made[1]}
    trace = {"format": "callgrade", "events": [{"user": "Please."}, {"call": call, "result": "r"}]}
    pattern = {"tool": expected, "args": {"x": 1}, "result": "r"}
    wanted = {"ordered": [pattern], "counts": {expected: 1}}
    for compat, number in ((True, theirs), (False, ours)):
        rubric = {"extends": f"uipath_tool_call_{part}", "compat": compat}
        assert score({"rubric": rubric, "trace": trace, "expected": wanted}).score == number


SPAN_TEXTS = [("[1,2]", "[1,2]", 1), ("[1,2]", "[1, 2]", 0), ('{"content": "[1,2]"}', "[1,2]", 1), ("0", "0", 1)]


@pytest.mark.parametrize("compat", [True, False])
@pytest.mark.parametrize(("told", "expected", "value"), SPAN_TEXTS)
def test_the_text_of_a_span_is_text(told: str, expected: str, value: float, compat: bool) -> None:
    attributes = {"tool.name": "f", "input.value": "{'x': 1}", "output.value": told}
    span = {"name": "f", "trace_id": "a", "span_id": "b", "attributes": attributes}
    rubric = {"extends": "uipath_tool_call_output", "compat": compat}
    found = score(
        {
            "rubric": rubric,
            "trace": {"format": "spans", "spans": [span]},
            "expected": {"calls": [{"tool": "f", "result": expected}]},
        }
    )
    assert found.score == value

"""The benchmark of wrong facts: a mutant is wrong in what it says it is, and all else is true."""

from __future__ import annotations

import doctest
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.benchmarks.slips import formulas, payloads, voices, wording
from tests.benchmarks.slips.cases import HALVES, Case, apply, build_cases, load_scenes, parse_answers
from tests.benchmarks.slips.slots import Slot
from tests.benchmarks.slips.voices import FREE
from tests.bulk import share

SOME = share([*HALVES], one_in=len(HALVES))
"""To make up the cases of one half takes a second."""


def half(test: Callable[..., None]) -> Callable[..., None]:
    """For each half, or a share of them."""
    return pytest.mark.whole(pytest.mark.parametrize("half", SOME)(test))


@cache
def cases(half: str) -> list[Case]:
    return build_cases(half)


@half
def test_a_mutant_differs_from_its_true_answer_in_the_changed_phrase_alone(half: str) -> None:
    for case in cases(half):
        if case.slip:
            assert len(case.changes) == (2 if case.slip == "swapped" else 1), case.id
            assert all(case.true[change.start : change.end] != change.text for change in case.changes), case.id
            assert apply(case.true, case.changes) == case.text != case.true, case.id


@half
def test_no_wrong_wording_is_a_right_one(half: str) -> None:
    for _, slot in slots(half):
        right = {said.lower() for said in (*slot.right.exact, *slot.right.loose)}
        for _, wrong in slot.wrong:
            assert slot.source == "phantom" or not right & {said.lower() for said in wrong.exact}, slot.source


@half
def test_what_a_slot_says_stands_in_the_result(half: str) -> None:
    for result, slot in slots(half):
        kind = slot.source.split(" ")[0].partition(":")[0]
        texts, numbers = split_leaves(result)
        if kind in ("name", "id", "winner", "most", "least"):
            assert slot.right.exact[0] in texts, slot.source
        elif kind in ("time", "date"):
            said = slot.right.exact[0 if kind == "time" else 1]
            assert any(said in text for text in texts), slot.source
        elif kind in ("money", "int", "pct", "qty", "dur", "max", "min"):
            assert numbers & {read_number(said) for said in slot.right.exact}, slot.source


@half
def test_a_result_shows_all_it_holds(half: str) -> None:
    for scene in (scene for name in HALVES[half] for scene in load_scenes(name)):
        case = Case("", scene, "", "")
        shown = "\n".join(m["content"] for m in case.build_trace("")["messages"] if m["role"] == "tool")
        plain = re.sub(r"\\+u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), shown).lower()
        texts, _ = split_leaves(scene.data["result"])
        assert not [text for text in texts if text != "None" and text.lower() not in plain], scene.name


@pytest.mark.parametrize("module", [formulas, payloads, voices, wording])
def test_examples_hold(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


@given(st.integers(1, 5_000_000).map(lambda cents: cents / 100))
def test_a_free_amount_is_near_what_it_says(value: float) -> None:
    for said in (*FREE.money(value, "EUR").exact, *FREE.money(value, "EUR").loose):
        number = float(re.sub(r"[^0-9.]", "", said)) * (1000 if said.endswith("k") else 1)
        assert abs(number - value) <= max(0.03 * value, 0.005), said


@given(st.integers(13, 2_000_000))
def test_a_free_number_is_near_what_it_says(value: int) -> None:
    for said in (*FREE.number(value).exact, *FREE.number(value).loose):
        number = float(re.sub(r"[^0-9.]", "", said))
        assert abs(number - value) <= 0.05 * value, said
        assert "just over" not in said or number < value, said
        assert "just under" not in said or number > value, said


@given(st.times())
def test_a_free_time_is_the_time(value: Any) -> None:
    for said in FREE.time(datetime(2026, 1, 1, value.hour, value.minute)).exact:
        text = said.lower().replace(".m.", "m").replace(".", ":").replace(" ", "")
        form = "%H:%M" if text[-1].isdigit() else "%I:%M%p" if ":" in text else "%I%p"
        assert datetime.strptime(text, form).time() == value.replace(second=0, microsecond=0), said


def slots(half: str) -> Iterator[tuple[Any, Slot]]:
    for name in HALVES[half]:
        for scene in load_scenes(name):
            json.dumps(scene.data)
            for answer in parse_answers(scene):
                yield from ((scene.data["result"], slot) for slot in answer.slots)


def split_leaves(value: Any) -> tuple[set[str], set[float]]:
    """Texts, and numbers as they are and as a hundredth and a hundred of them."""
    if isinstance(value, dict | list):
        parts = [split_leaves(each) for each in (value.values() if isinstance(value, dict) else value)]
        return set().union(*(texts for texts, _ in parts)), set().union(*(numbers for _, numbers in parts))
    if isinstance(value, str | bool | None):
        return {str(value)}, set()
    return {str(value)}, {float(value), round(value / 100, 4), round(value * 100, 4)}


def read_number(said: str) -> float:
    digits = "".join(char for char in said.rsplit(" and ", maxsplit=1)[-1] if char in "0123456789.-")
    return float(digits.rstrip("-").strip(".") or 0)

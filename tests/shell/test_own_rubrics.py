"""Rubrics that requests bring: read and completed once, and never taken for one another."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from service.core.rubric import Rubric, Thresholds
from service.errors import InputError
from service.reading.request import read_request
from service.registry import Registry

TRACE = {
    "format": "openai",
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
}
INLINE = {"id": "own", "criteria": [{"id": "decide", "stage": "decide", "check": {"kind": "decide"}}]}
CHANGED = {"extends": "four_step", "thresholds": {"fail": 0.5, "warn": 0.6}}


def request(rubric: Any) -> dict[str, Any]:
    return {"trace": TRACE, "rubric": copy.deepcopy(rubric)}


@pytest.mark.parametrize("rubric", [INLINE, CHANGED], ids=["inline", "extends"])
def test_the_same_rubric_of_two_requests_is_worked_out_once(rubric: dict[str, Any]) -> None:
    registry = Registry()
    first, second = (registry.find(read_request(request(rubric)).rubric) for _ in range(2))
    assert first is second
    other = {**rubric, "id": "another"}
    assert registry.find(read_request(request(other)).rubric).id == "another"
    assert registry.find(read_request(request(rubric)).rubric) is first


def test_a_rubric_of_python_objects_is_read_too() -> None:
    thresholds = Thresholds(fail=0.1, warn=0.2)
    read = read_request({"trace": TRACE, "rubric": {**INLINE, "thresholds": thresholds}})  # pyright: ignore[reportArgumentType]
    assert isinstance(read.rubric, Rubric)
    assert read.rubric.thresholds == thresholds


def test_what_is_wrong_with_a_rubric_is_told_with_all_else_that_is_wrong() -> None:
    with pytest.raises(InputError) as caught:
        read_request({"trace": {"format": "openai", "id": 1}, "rubric": {"id": "own", "criteria": 7}})
    assert {problem.path for problem in caught.value.problems} >= {"/rubric/criteria", "/trace/id"}

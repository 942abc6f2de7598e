"""Rubrics that requests bring: read and completed once, and never taken for one another."""

from __future__ import annotations

import copy
from typing import Any

import pytest

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


def nested(depth: int) -> dict[str, Any]:
    return {} if depth == 0 else {"a": nested(depth - 1)}


NO_JSON = [{"id": {1}}, {"id": 10**5_000}, {("a", 1): 2}, nested(900)]


@pytest.mark.parametrize("rubric", NO_JSON, ids=["a set", "a long number", "a tuple as key", "deep"])
def test_what_is_no_json_is_refused_as_what_it_is(rubric: Any) -> None:
    with pytest.raises(InputError) as caught:
        read_request({"trace": TRACE, "rubric": rubric})
    assert all(problem.path.startswith("/rubric") for problem in caught.value.problems)

"""How many functions a case takes: the same on every machine, so that a change that adds work is seen."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from service.core.rubric import Extension
from service.engine import Engine, report_json
from service.registry import Shelf
from tests.benchmarks.scoring import BESIDE_THE_GATES, GATES_ALONE
from tests.benchmarks.workload import cases, request

CASES = 60
MEASURED_ON = (3, 11)


def count_calls(rubric: str | None) -> float:
    """Calls of functions, of Python's own too, for a case of the packaged workload whose tools were seen before."""
    engine = Engine(Shelf())
    engine.shelf.add(engine.shelf.find(Extension(extends="four_step", id=GATES_ALONE, without=BESIDE_THE_GATES)))
    requests = [request(case) | ({"rubric": rubric} if rubric else {}) for case in cases()[1][:CASES]]
    for one in requests:
        report_json(engine.score(one))
    calls = 0

    def note(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for one in requests:
            report_json(engine.score(one))
    finally:
        sys.setprofile(before)
    return calls / CASES


@pytest.mark.skipif(sys.version_info[:2] != MEASURED_ON, reason="calls are counted on Python 3.11")
@pytest.mark.parametrize(("rubric", "most"), [(GATES_ALONE, 720), (None, 1_090)], ids=["gates", "four_step"])
def test_calls_of_a_case(rubric: str | None, most: int) -> None:
    assert count_calls(rubric) <= most

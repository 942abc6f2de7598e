"""The life of a request, as CONTRIBUTING.md tells it: the functions that it names are entered, in its order."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pkgutil import resolve_name
from types import CodeType, FrameType
from typing import Any

import pytest

from service.core.gates.custom import OWN_CHECKS
from tests.api.conftest import Score
from tests.api.test_judged import application, body
from tests.docs.pages import Page
from tests.faults.clock import Clock
from tests.faults.provider import Provider

TOLD = re.findall(r"`(service(?:\.\w+)+)`", Page("CONTRIBUTING.md").section("## The life of a request"))
BESIDE = {
    "service.api.fairness.Threads.run",
    "service.scoring_process.ScoringProcess.score",
    "service.wiring.build_engine",
}
"""For large requests alone; at the start of the process."""
WAITED_FOR = {
    name for name in TOLD if "asking" in name or name in ("service.engine.Engine.plan", "service.engine.Engine.finish")
}
"""Where a judge is asked."""
AT_ONCE = "service.engine.Engine.answer"
"""Where none is."""


@contextmanager
def watch() -> Iterator[dict[CodeType, int]]:
    """What is entered, in order."""
    entered: dict[CodeType, int] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            entered.setdefault(frame.f_code, len(entered))

    sys.setprofile(note)
    try:
        yield entered
    finally:
        sys.setprofile(None)


def find_code(name: str) -> CodeType:
    found = resolve_name(name)
    return (found.__call__ if isinstance(found, type) else found).__code__


@pytest.fixture(autouse=True)
def no_checks_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has imported none: for them a rubric is looked at twice."""
    for name in [*OWN_CHECKS]:
        monkeypatch.delitem(OWN_CHECKS, name)


@pytest.mark.parametrize("judges", ["off", "live"])
def test_the_functions_are_entered_in_their_order(provider: Provider, clock: Clock, score: Score, judges: str) -> None:
    app = application(provider, clock, "says-argument_plausibility")
    with watch() as entered:
        answer = score(app, body(judges=judges))
    assert answer.status == 200
    told = [name for name in TOLD if name not in BESIDE | ({AT_ONCE} if judges == "live" else WAITED_FOR)]
    assert len(told) > 12
    passed = [name for name in told if find_code(name) in entered]
    assert passed == told
    assert sorted(passed, key=lambda name: entered[find_code(name)]) == told

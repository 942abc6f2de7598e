"""`callgrade plan`: every question and every reason why one is not asked."""

from __future__ import annotations

import json

import pytest

import service
from service.cli.rendering.demo import DemoCase, demo_cases
from tests.cli.cli_run import Run

CASES = demo_cases()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.title) for case in CASES])
def test_a_plan_tells_what_is_asked_and_what_is_blocked(case: DemoCase, run: Run) -> None:
    plan = service.plan(case.request)  # type: ignore[arg-type]
    body = json.dumps(case.request).encode()
    told = json.loads(run("plan", "-", "--format", "json", stdin=body).out)
    (trace,) = told["traces"]
    asks = [(a["criterion"], a["judge"], a["step"], a["question"]) for a in trace["asks"]]
    assert asks == [(a.criterion, a.judge.id, a.step, a.judge.question) for a in plan.asks]
    assert [(b["criterion"], b["step"], b["why"]) for b in trace["blocked"]] == [
        (b.ask.criterion, b.ask.step, b.why) for b in plan.blocked
    ]
    assert told["totals"] == {"traces": 1, "questions": len(plan.asks), "blocked": len(plan.blocked), "refused": 0}
    table = run("plan", "-", stdin=body).out
    assert all(ask.judge.id in table for ask in plan.asks)
    assert table.count("not asked: ") == len(plan.blocked)


def test_totals_of_many_and_of_none(run: Run) -> None:
    body = b"".join(json.dumps(case.request).encode() + b"\n" for case in CASES) + b"{}\n"
    ran = run("plan", "-", "--format", "json", stdin=body)
    told = json.loads(ran.out)
    plans = [service.plan(case.request) for case in CASES]  # type: ignore[arg-type]
    assert told["totals"]["questions"] == sum(len(plan.asks) for plan in plans)
    assert (told["totals"]["refused"], ran.code) == (1, 5)
    assert [trace["line"] for trace in told["traces"]] == list(range(1, len(CASES) + 1))
    assert json.loads(run("plan", "-", "--format", "json").out) == {
        "traces": [],
        "totals": {"traces": 0, "questions": 0, "blocked": 0, "refused": 1},
    }

"""`callgrade plan`: every question and every reason why one is not asked."""

from __future__ import annotations

import json

import pytest

import service
from service.cli.commands.demo import DemoCase, list_demo_cases
from service.core.money import format_usd
from tests.cli.cli_run import Run

CASES = list_demo_cases()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.title) for case in CASES])
def test_a_plan_tells_what_is_asked_and_what_is_blocked(case: DemoCase, run: Run) -> None:
    plan = service.plan(case.request)  # type: ignore[arg-type]
    body = json.dumps(case.request).encode()
    told = json.loads(run("plan", "-", "--format", "json", stdin=body).out)
    (trace,) = told["traces"]
    asks = [(a["criterion"], a["judge"], a["step"], a["question"]) for a in trace["asks"]]
    assert asks == [(a.criterion, a.judge.id, a.step, a.judge.question) for a in plan.asks]
    assert [(b["criterion"], b["step"], b["why"]) for b in trace["blocked"]] == [
        (b.ask.criterion, b.ask.step, b.why) for b in plan.blocked_asks
    ]
    assert told["totals"] == {"traces": 1, "questions": len(plan.asks), "blocked": len(plan.blocked_asks), "refused": 0}
    table = run("plan", "-", stdin=body).out
    assert all(ask.judge.id in table for ask in plan.asks)
    assert table.count("not asked: ") == len(plan.blocked_asks)


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


PRICES = {"openai/gpt-4o-mini": 0.15e-6, "openai/gpt-4o": 2.5e-6}
"""Of one token of a prompt, by the price map that litellm brings; one of a reply is four times as dear."""


@pytest.mark.parametrize("model", PRICES)
def test_a_price_is_that_of_all_questions_at_most(run: Run, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", model)
    body = json.dumps({**CASES[0].request, "judges": "live", "expected": None}).encode()
    totals = json.loads(run("plan", "-", "--price", "--format", "json", stdin=body).out)["totals"]
    assert PRICES[model] * totals["tokens"] < totals["cost_usd"] < 16 * PRICES[model] * totals["tokens"]
    told = run("plan", "-", "--price", stdin=body).out
    assert f"at most {totals['tokens']:,} tokens of {model}, {format_usd(totals['cost_usd'])}" in told
    assert f"{format_usd(1_000 * totals['cost_usd'])} for 1,000 such traces" in told


def test_an_unknown_price_is_said_and_no_model_is_a_matter_of_configuration(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = json.dumps({**CASES[0].request, "judges": "live", "expected": None}).encode()
    assert run("plan", "-", "--price", stdin=body).code == 4
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/of-our-own")
    ran = run("plan", "-", "--price", "--format", "json", stdin=body)
    assert (ran.code, json.loads(ran.out)["totals"]["cost_usd"]) == (0, None)
    assert "price unknown" in run("plan", "-", "--price", stdin=body).out

"""`callgrade plan`: every question and every reason why one is not asked."""

from __future__ import annotations

import json
import re

import pytest

import service
from service.cli.commands.demo import DemoCase, list_demo_cases
from tests.cli.cli_run import Run

CASES = list_demo_cases()
JUDGED = json.dumps({**CASES[0].request, "judges": "live", "expected": None}).encode()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.title) for case in CASES])
def test_a_plan_tells_what_is_asked_and_what_is_blocked(case: DemoCase, run: Run) -> None:
    plan = service.plan(case.request)  # type: ignore[arg-type]
    ran = run("plan", "-", stdin=json.dumps(case.request).encode())
    rows = [tuple(line.split()) for line in ran.lines if line.startswith("  ")]
    asked = [(row[0], row[-1]) for row in rows if row[-2:-1] == ("asks",)]
    assert asked == [(a.criterion, a.judge.id) for a in plan.asks]
    blocked = [line.split()[0] for line in ran.lines if "not asked: " in line]
    assert blocked == [one.ask.criterion for one in plan.blocked_asks]
    count = "1 question" if len(plan.asks) == 1 else f"{len(plan.asks)} questions"
    assert f"1 trace: {count} for a judge, {len(plan.blocked_asks)} blocked by a failed check" in ran.out
    assert all(ask.judge.question in " ".join(ran.out.split()) for ask in plan.asks)


def test_totals_of_many_and_of_none(run: Run) -> None:
    ran = run("plan", "-", stdin=b"".join(json.dumps(case.request).encode() + b"\n" for case in CASES) + b"{}\n")
    plans = [service.plan(case.request) for case in CASES]  # type: ignore[arg-type]
    assert f"{len(CASES)} traces: {sum(len(plan.asks) for plan in plans)} questions for a judge" in ran.out
    assert (ran.lines[-1], ran.code) == ("not planned: 1 record", 5)
    assert run("plan", "-").out.startswith("0 traces: 0 questions")


PRICES = {"openai/gpt-4o-mini": 0.15e-6, "openai/gpt-4o": 2.5e-6}
"""Of one token of a prompt, by the price map that litellm brings; one of a reply is four times as dear."""


@pytest.mark.parametrize("model", PRICES)
def test_a_price_is_that_of_all_questions_at_most(run: Run, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", model)
    told = run("plan", "-", "--price", stdin=JUDGED).out
    found = re.search(r"at most ([\d,]+) tokens of (\S+), \$([\d.]+): \$([\d.]+) for 1,000 such traces", told)
    assert found is not None
    tokens, cost, per_thousand = (float(found[n].replace(",", "")) for n in (1, 3, 4))
    assert found[2] == model
    assert PRICES[model] * tokens < per_thousand / 1000 < 16 * PRICES[model] * tokens
    assert per_thousand == pytest.approx(1000 * cost, rel=0.1)


def test_an_unknown_price_is_said_and_no_model_is_a_matter_of_configuration(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("plan", "-", "--price", stdin=JUDGED).code == 4
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/of-our-own")
    ran = run("plan", "-", "--price", stdin=JUDGED)
    assert (ran.code, "price unknown" in ran.out) == (0, True)

"""What is measured, what is open and what follows for the verdict: `tests/data/verdicts/examples.yaml`, and single rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from service import Plan, Report, conclude
from service.core.calibrate import Fit, Identity
from service.core.conclude import Answer
from service.core.judged import Reply
from service.core.judges import Ask
from service.core.outcome import Errored, Skipped
from service.core.prompts import Usage
from service.core.questions import ASSEMBLY
from service.core.replies import Judgement
from service.io.engine import Engine
from service.io.files import read_yaml
from service.io.shelf import Shelf
from service.request import read_request

FILE = Path(__file__).parents[1] / "data" / "verdicts" / "examples.yaml"
TABLE = cast("dict[str, Any]", read_yaml(FILE.read_text("utf-8"), source=FILE.name))
ENGINE = Engine(Shelf())
FAULTS: dict[str, Answer] = {"errored": Errored("timeout", "no reply"), "miss": Skipped("not_asked", "nothing cached")}


def body_of(case: dict[str, Any]) -> dict[str, Any]:
    """The request of a case: what it does not say is as in `base`."""
    made = {**TABLE["base"], "tools": TABLE["tools"], "rubric": "four_step", **case}
    calls = made["calls"] * made.get("repeat", 1)
    events = [
        {"user": "What does order 8 come to?"},
        *[
            {"call": {"name": c["name"], "arguments": c["arguments"]}} | {k: c[k] for k in c if k == "result"}
            for c in calls
        ],
        {"assistant": made["answer"]},
    ]
    trace = {"format": "callgrade", "events": events}
    trace |= {} if made["tools"] is None else {"tools": made["tools"]}
    body = {"rubric": made["rubric"], "trace": trace}
    return body | ({} if made["expected"] is None else {"expected": made["expected"]})


def answers_of(plan: Plan, said: dict[str, Any]) -> dict[str, Answer]:
    """What the judges say: of each criterion one answer for all questions, or one for each; 1 where nothing is said."""
    left = {name: list(given) if isinstance(given, list) else None for name, given in said.items()}
    return {ask.key: _answer(ask, said, left) for ask in plan.asks}


def _answer(ask: Ask, said: dict[str, Any], left: dict[str, list[Any] | None]) -> Answer:
    several = left.get(ask.criterion)
    given = (several.pop(0) if several else 1) if several is not None else said.get(ask.criterion, 1)
    if given in FAULTS:
        return FAULTS[given]
    label = min(ask.judge.scale, key=lambda name: abs(ask.judge.scale[name].value - given))
    return (Reply(Judgement(label, float(given), "so it is"), "m", "m", "miss", Usage(1, 1, None)),)


def fits_of(plan: Plan, given: dict[str, Any] | None) -> list[Fit]:
    """The fit of `grounded` that changes no value, with what a case says of it."""
    if given is None:
        return []
    judge = plan.rubric.known_judges["result_groundedness"]
    made = {
        "judge": judge.id,
        "judge_digest": judge.digest,
        "model": "m",
        "assembly": ASSEMBLY,
        "criterion": "grounded",
    }
    how = {
        "method": "identity",
        "calibrator": Identity(),
        "origin": "human",
        "labels": 100,
        "groups": 100,
        "data": "0" * 64,
    }
    return [Fit.model_validate({**made, **how, "enough": True, "domain": (0.0, 1.0), **given})]


def report_of(case: dict[str, Any]) -> Report:
    plan = ENGINE.plan(read_request(body_of(case)))
    judges = case["judges"]
    if isinstance(judges, str):
        return conclude(plan, mode=cast("Any", judges))
    return conclude(plan, answers_of(plan, judges), mode="live", fits=fits_of(plan, case.get("fit")))


def shown(report: Report) -> dict[str, Any]:
    return {
        "verdict": report.verdict,
        "scope": report.scope,
        "score": report.score,
        "coverage": report.coverage,
        "range": None if report.score_range is None else list(report.score_range),
        "decided": report.decided,
        "open": [[one.criterion, one.cause, one.decides] for one in report.open],
        "unread": [one.path for one in report.unread],
    }


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_example(case: dict[str, Any]) -> None:
    found = shown(report_of(case))
    assert {name: found[name] for name in case["want"]} == {
        name: pytest.approx(wanted, abs=5e-4) if name in ("score", "coverage", "range", "decided") else wanted
        for name, wanted in case["want"].items()
    }

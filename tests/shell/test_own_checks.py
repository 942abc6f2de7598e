"""Checks of the user's own: where they are registered and found, what they may take, and what becomes of their faults."""

from __future__ import annotations

import asyncio
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

import callgrade
from service import Engine, InputError, Registry
from service.engine import report_json
from tests import own_checks
from tests.core.reports import outcomes

TRACE: dict[str, Any] = {
    "events": [{"user": "Hi"}, {"call": {"name": "a_long_name"}, "result": 1}, {"assistant": "Yes."}]
}
REQUEST: dict[str, Any] = {"trace": TRACE, "judges": "off"}
RUBRIC: dict[str, Any] = {
    "id": "own",
    "criteria": [
        {"id": name, "stage": "effect", "check": {"kind": "custom", "name": name}} for name in ("half", "short_name")
    ],
}


def outcome_of(report: callgrade.Report, name: str) -> Any:
    return outcomes(report, name)[0]


def test_functions_that_are_passed_are_criteria_in_their_stages() -> None:
    report = callgrade.score(REQUEST, checks=[own_checks.short_name, own_checks.answered, own_checks.half])
    stages = {one.id: one.stage for one in report.criteria}
    assert (stages["short_name"], stages["answered"], stages["half"]) == ("select", "integrate", "effect")
    assert (outcome_of(report, "short_name").passed, outcome_of(report, "half").value) == (False, 0.5)
    assert callgrade.score(REQUEST).rubric != report.rubric
    with pytest.raises(TypeError, match="is no check"):
        callgrade.score(REQUEST, checks=[len])


def test_a_crash_is_open_and_its_traceback_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    report = callgrade.score(REQUEST, checks=[own_checks.broken])
    assert ("broken", "check_failed") in {(one.criterion, one.cause) for one in report.open}
    assert "Yes. is not to my liking" in outcome_of(report, "broken").reason
    assert "Traceback" in caplog.text


def test_a_coroutine_is_awaited_whoever_runs_a_loop() -> None:
    engine = Engine(Registry())
    body = {**REQUEST, "rubric": RUBRIC}
    alone = engine.score(body)

    async def inside() -> tuple[callgrade.Report, callgrade.Report]:
        return engine.score(body), await engine.score_async(body)

    assert {report_json(one) for one in (alone, *asyncio.run(inside()))} == {report_json(alone)}
    assert outcome_of(alone, "half").value == 0.5


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"name": "nobodys"}, "no check 'nobodys' is registered here; known: answered"),
        ({"name": "short_name", "params": {"most": "x"}}, "params of the check short_name: most: "),
        ({"name": "answered", "params": {"most": 1}}, "the check answered takes no params"),
    ],
)
def test_a_rubric_that_names_it_wrongly_is_refused(check: dict[str, Any], message: str) -> None:
    rubric = {"id": "r", "criteria": [{"id": "c", "stage": "effect", "check": {"kind": "custom", **check}}]}
    with pytest.raises(InputError, match=message) as found:
        callgrade.score({**REQUEST, "rubric": rubric})
    assert found.value.problems[0].path.startswith("/rubric/criteria/0/check")


def test_parameters_that_mean_nothing_are_refused() -> None:
    with pytest.raises(TypeError, match="not colour"):
        callgrade.check("x", stage="effect")(lambda trace, colour: True)  # noqa: ARG005
    with pytest.raises(ValueError, match="no stage 'efect'"):
        callgrade.check("x", stage="efect")  # type: ignore[arg-type]


def score_there(body: dict[str, Any]) -> bytes:
    return report_json(callgrade.score(body))


def test_a_process_that_imports_them_scores_the_same() -> None:
    body = {**REQUEST, "rubric": RUBRIC}
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=own_checks.answered, initargs=(NoSteps(),)
    ) as pool:
        assert pool.submit(score_there, body).result() == score_there(body)


class NoSteps:
    """Unpickling this in another process imports `tests.own_checks` there."""

    steps = ()

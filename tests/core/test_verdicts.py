"""What is measured, what is open and what follows for the verdict: `tests/data/verdicts/examples.yaml`, and single rules."""

from __future__ import annotations

from dataclasses import replace
from itertools import repeat
from typing import Any, cast

import pytest

from service import Plan, Report, conclude
from service.core.conclusion.judge_answers import Answer
from service.core.judging.fits.fit import Fit
from service.core.judging.judges import Ask
from service.core.outcome import Errored, Skipped
from service.core.trace import UnreadablePart
from service.engine import Engine
from service.reading.request import plan_request, read_request, read_request_trace
from service.registry import Registry
from tests.fits import make_fit_of
from tests.replies import make_reply
from tests.tables import DATA, named, read_yaml

TABLE: dict[str, Any] = read_yaml(DATA / "verdicts" / "examples.yaml")
ENGINE = Engine(Registry())
FAULTS: dict[str, Answer] = {"errored": Errored("timeout", "no reply"), "miss": Skipped("not_asked", "nothing cached")}


def body_of(case: dict[str, Any]) -> dict[str, Any]:
    """The request of a case: what it does not say is as in `base`."""
    made = {**TABLE["base"], "tools": TABLE["tools"], "rubric": "four_step", **case}
    events: list[dict[str, Any]] = [{"user": "What does order 8 come to?"}]
    for call in made["calls"] * made.get("repeat", 1):
        result = {"result": call["result"]} if "result" in call else {}
        events.append({"call": {"name": call["name"], "arguments": call["arguments"]}, **result})
    events.append({"assistant": made["answer"]})
    trace = {"format": "callgrade", "events": events}
    trace |= {} if made["tools"] is None else {"tools": made["tools"]}
    body = {"rubric": made["rubric"], "trace": trace}
    return body | ({} if made["expected"] is None else {"expected": made["expected"]})


def answers_of(plan: Plan, said: dict[str, Any]) -> dict[str, Answer]:
    """What the judges say: of each criterion one answer for all questions, or one for each; 1 where nothing is said."""
    left = {name: iter(given if isinstance(given, list) else repeat(given)) for name, given in said.items()}
    return {ask.key: _answer(ask, next(left.get(ask.criterion, iter(())), 1)) for ask in plan.asks}


def _answer(ask: Ask, given: Any) -> Answer:
    if given in FAULTS:
        return FAULTS[given]
    label = min(ask.judge.scale, key=lambda name: abs(ask.judge.scale[name].value - given))
    return (make_reply(label, float(given)),)


def fits_of(plan: Plan, given: dict[str, Any] | None) -> list[Fit]:
    """The fit of `result_groundedness` that changes no value, with what a case says of it."""
    if given is None:
        return []
    asked = next(ask for ask in plan.asks if ask.criterion == "result_groundedness")
    return [make_fit_of(asked, **{"threshold": None, **given})]


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
        "full": None if report.full_range is None else list(report.full_range),
        "open": [[one.criterion, one.cause, one.decides] for one in report.open],
        "unread": [one.path for one in report.unread],
    }


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_example(case: dict[str, Any]) -> None:
    found = shown(report_of(case))
    assert {name: found[name] for name in case["want"]} == {
        name: pytest.approx(wanted, abs=5e-4) if name in ("score", "coverage", "range", "full") else wanted
        for name, wanted in case["want"].items()
    }


def trace_of(user: str, calls: list[list[Any]], answer: str) -> dict[str, Any]:
    """A conversation with tools that take these arguments and no others."""
    tools = {
        name: {"name": name, "parameters": {"type": "object", "properties": {key: {} for key in arguments}}}
        for name, arguments, _ in calls
    }
    events = [{"call": {"name": name, "arguments": arguments}, "result": result} for name, arguments, result in calls]
    said = [{"user": user}, *events, {"assistant": answer}]
    return {"format": "callgrade", "tools": [*tools.values()], "events": said}


@pytest.mark.parametrize("row", read_yaml(DATA / "verdicts" / "wrong.yaml"), ids=lambda row: row[0])
def test_what_nobody_has_looked_at_does_not_pass(row: list[Any]) -> None:
    trace = trace_of(*row[1:])
    reports = [ENGINE.score({"trace": trace}), ENGINE.score({"trace": trace, "judges": "off"})]
    assert {report.verdict for report in reports} <= {"undecided", "fail"}


@pytest.mark.parametrize("row", read_yaml(DATA / "verdicts" / "right.yaml"), ids=lambda row: row[3])
def test_what_code_decides_passes_where_the_caller_wants_no_more(row: list[Any]) -> None:
    name, arguments, result, user, answer = row
    expected = {"calls": [{"tool": name, "args": arguments}]}
    body = {"trace": trace_of(user, [[name, arguments, result]], answer), "expected": expected}
    report = ENGINE.score({**body, "judges": "off"})
    assert (report.verdict, report.scope, report.open) == ("pass", "code", ())
    assert report.coverage == pytest.approx(0.75)
    assert ENGINE.score(body).verdict == "undecided"


UNREAD_CALL = UnreadablePart("call", "/messages/1", "a call of a kind that is not read", turn=1)
UNREAD_RESULT = UnreadablePart("result", "/steps/0/result/content", "an image", turn=1, step=0)
UNREAD_TEXT = UnreadablePart("text", "/messages/2", "a text of a kind that is not read", turn=1)
UNREADS = [
    ("no call was due, and one is unread", {"calls": "none"}, [], (UNREAD_CALL,), {"decide"}),
    ("a call was due, and one is unread", {"calls": [{"tool": "look"}]}, [], (UNREAD_CALL,), {"decide", "tool_name"}),
    ("a ban that the unread call may break", {"disallowed": [{"tool": "void"}]}, [], (UNREAD_CALL,), {"disallowed"}),
    ("a count", {"counts": {"look": 1}}, [], (UNREAD_CALL,), {"count"}),
    ("an unread result", {"calls": [{"tool": "look", "result": {"a": 1}}]}, [["look", {}, None]], (UNREAD_RESULT,),
     {"results"}),
    ("an answer after an unread result", {"calls": [{"tool": "look"}]}, [["look", {}, None]], (UNREAD_RESULT,),
     {"result_groundedness"}),
    ("an unread text", {"answer": "It is done."}, [], (UNREAD_TEXT,), {"answer"}),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "calls", "unread", "criteria"), named(UNREADS))
def test_what_could_not_be_read_leaves_open_what_rests_on_it(
    expected: Any, calls: list[list[Any]], unread: tuple[UnreadablePart, ...], criteria: set[str]
) -> None:
    body = {"trace": trace_of("Please.", calls, "It is done."), "expected": expected, "judges": "off"}
    request = read_request(body)
    trace = replace(read_request_trace(request), unread=unread)
    report = conclude(plan_request(request, ENGINE.registry.find("four_step"), trace), mode="off")
    assert criteria <= {one.criterion for one in report.open if one.cause == "unread"}
    assert report.verdict == "undecided"
    assert [part.path for part in report.unread] == [part.path for part in unread]

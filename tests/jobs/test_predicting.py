"""Labelled items are judged: what the judge says becomes a prediction, what it does not say is told."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from service import plan
from service.asking.budget.reservations import Spending
from service.asking.cache.guard import Cache
from service.asking.demo_judge import DemoJudge
from service.asking.judging import Judges, Judging
from service.calibration.labels import LabelledItem
from service.calibration.predictions import AnswerId, Prediction, read_judged_set
from service.calibration.report_predictions import UnansweredItem
from service.core.judging.grades import grade_claims
from service.core.judging.prompts import Completion, Prompt
from service.core.judging.questions import ASSEMBLY, build_question
from service.engine import Engine
from service.errors import InputError
from service.labelling.predictions import AskSettings, build_request, collect_predictions
from service.registry import Registry
from service.wiring import build_demo_judging
from tests.conftest import Run
from tests.replies import MemoryCache

T = TypeVar("T")

REGISTRY = Registry()
STARTER = Path(__file__).parents[2] / "calibration" / "labels" / "starter.jsonl"


class Counted:
    """The stand-in, which keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._calls = DemoJudge()

    async def complete(self, prompt: Prompt, spending: Spending, tenant: str = "") -> Completion:
        self.asked.append(prompt.turns[1].text)
        return await self._calls.complete(prompt, spending)


def item(**more: Any) -> LabelledItem:
    written = {
        "id": "a",
        "criterion": "result_groundedness",
        "group": "g",
        "labels": [{"annotator": "ana", "label": True}],
        **more,
    }
    return LabelledItem.model_validate(written)


def predicted(
    run: Run, items: Sequence[LabelledItem], judging: Judging | None = None, *, repeats: int = 1
) -> tuple[list[Prediction], list[str]]:
    asking = AskSettings(REGISTRY.find("four_step"), repeats=repeats)
    found = run(listed(collect_predictions(Engine(REGISTRY, judging=judging or build_demo_judging()), items, asking)))
    missing = [str(one) for one in found if isinstance(one, UnansweredItem)]
    return [one for one in found if isinstance(one, Prediction)], missing


async def listed(found: AsyncIterator[T]) -> list[T]:
    return [one async for one in found]


def test_every_case_of_the_starter_set_is_judged(run: Run):
    items = read_judged_set(STARTER.read_text("utf-8").splitlines()).labels.items
    made, missing = predicted(run, items)
    assert len(made) == 60 - len(missing) > 50
    assert all(reason.endswith("code decides it, so no judge is asked") for reason in missing)
    assert {one.criterion for one in made} == {
        "call_decision",
        "tool_selection",
        "argument_plausibility",
        "result_groundedness",
    }
    for one in made:
        judge = REGISTRY.judges[one.judge]
        assert (one.judge_digest, one.model, one.assembly) == (judge.digest, "callgrade/stand-in", ASSEMBLY)
        grades = {grade_claims("worst", [1.0, *[0.0] * bad]).graded for bad in range(4)}
        assert one.raw in (grades if judge.claims == "worst" else {label.value for label in judge.scale.values()})
        assert one.reason


def test_what_code_decides_nobody_is_asked_here_as_in_scoring(run: Run):
    """A scale flip never reaches a judge in four_step: a fit is of what does."""
    made, missing = predicted(run, [item(payload={"amount_cents": 540000}, answer="It is $54.00.")])
    assert (made, missing) == ([], ["a: code decides it, so no judge is asked"])


def test_the_judge_is_shown_the_evidence_that_scoring_shows_and_the_fit_is_bound_to_it(run: Run):
    asked = item(payload={"amount_cents": 540000}, answer="It is $5,400.00.")
    calls = Counted()
    [one], _ = predicted(run, [asked], Judging(calls, Cache(), Judges("callgrade/stand-in")))
    [prompt] = calls.asked
    asking = AskSettings(REGISTRY.find("four_step"))
    [question] = asking.list_questions([asked])
    request: Any = build_request(question, asking)
    made = plan({**request, "rubric": "four_step"})
    [ask] = [ask for ask in made.asks if ask.criterion == "result_groundedness"]
    assert one.evidence == ask.evidence_digest
    assert "\nevidence: " in prompt
    boundary = prompt.split("\n\n", 1)[0].rpartition("\n")[2]
    [token] = re.findall(r'"token": "(\w+)"', prompt)
    shown = prompt.replace(boundary, "B").replace(token, "T")
    assert shown == build_question(ask, made.trace).prompt("m", "B", "T").turns[1].text


def said_of(name: str, sample: int) -> AnswerId:
    return AnswerId(name, "result_groundedness", sample, "result_groundedness")


TWO = [item(id=name, payload={"amount_cents": 5400}, answer=f"{name}: it is $54.00.") for name in ("a", "b")]


def test_each_repeat_is_an_answer_of_its_own_and_the_cache_knows_them_apart(run: Run):
    calls, cache = Counted(), MemoryCache()
    judging = Judging(calls, cache, Judges("openai/m"))
    made, _ = predicted(run, TWO, judging)
    assert [one.sample for one in made] == [0, 0]
    made, missing = predicted(run, TWO, judging, repeats=3)
    assert sorted(one.answer_id for one in made) == [said_of(name, n) for name in ("a", "b") for n in range(3)]
    assert (len(calls.asked), len(cache.texts), missing) == (6, 6, [])
    predicted(run, TWO, judging, repeats=3)
    assert len(calls.asked) == 6


def test_a_trace_that_cannot_be_read_is_told_with_its_item_before_anybody_is_asked(run: Run):
    calls = Counted()
    with pytest.raises(InputError) as refused:
        predicted(run, [*TWO, item(id="odd", trace={"format": "openai"})], Judging(calls, Cache(), Judges("m")))
    assert refused.value.problems[0].path.startswith("odd: /trace")
    assert calls.asked == []


TWO_TURNS = {
    "format": "callgrade",
    "events": [{"user": "How much is it?"}, {"call": {"name": "price", "arguments": {}},
     "result": {"amount_cents": 5400}}, {"assistant": "It is $54.00."}, {"user": "And with tax?"},
     {"assistant": "It is $77.00."}],
}  # fmt: skip


def test_the_worst_of_several_questions_is_what_a_criterion_comes_to(run: Run):
    """`call_decision` takes the mean of its questions: there a label of the whole says nothing of one."""
    made, missing = predicted(run, [item(trace=TWO_TURNS), item(id="b", criterion="call_decision", trace=TWO_TURNS)])
    assert [(one.id, one.raw) for one in made] == [("a", 0.5)]
    assert missing == [
        "b: 2 questions, of which the criterion takes the mean: label steps of a run, or traces of one each"
    ]

"""Calibration asks as scoring does: what it fits decides there, and any change of any part of the way leaves the outcome open."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.asking.budget.reservations import Spending
from service.asking.cache.guard import Cache
from service.asking.demo_judge import DemoJudge
from service.asking.judging import Judges, Judging
from service.calibration.labels import LabelledItem
from service.calibration.predictions import Prediction
from service.calibration.report_predictions import list_judged, read_prediction
from service.core.conclusion.conclude import conclude
from service.core.judging import voting
from service.core.judging.fits.certificate import Guarantee
from service.core.judging.fits.fit import Fit
from service.core.judging.judges import Ask
from service.core.judging.notes import JudgeReply
from service.core.judging.prompts import Completion, Prompt
from service.core.report import Report
from service.core.rubric import Rubric
from service.engine import Engine
from service.labelling.predictions import AskSettings, collect_predictions
from service.reading.request import plan_request, read_request
from service.registry import Registry
from service.settings import Settings
from service.wiring import choose_route
from tests.bulk import examples
from tests.fits import make_fit
from tests.replies import make_reply

REGISTRY = Registry()
JUDGE = REGISTRY.judges["result_groundedness"]
Changes = dict[str, Any]


class Named(DemoJudge):
    """The stand-in, under the name of whoever is asked."""

    async def complete(self, prompt: Prompt, spending: Spending | None = None, tenant: str = "") -> Completion:
        return replace(await super().complete(prompt, spending), model=prompt.model.rpartition("/")[2])


def build_rubric(changes: Changes) -> Rubric:
    judge = {**JUDGE.model_dump(mode="json"), **changes.get("judge", {})}
    check = {"kind": "cascade", "evidence": {"kind": "grounding"}, "judge": judge["id"], **changes.get("check", {})}
    if check["kind"] == "judge":
        check = {"kind": "judge", "judge": judge["id"]}
    criterion = {
        "id": "result_groundedness",
        "stage": "integrate",
        "must_pass": True,
        "aggregate": "min",
        "check": check,
    }
    return Rubric.model_validate({"id": "alone", "judges": [judge], "criteria": [criterion]})


def build_engine(changes: Changes, fits: Sequence[Fit] = ()) -> Engine:
    said = Settings(**{"judge_model": "openai/m", "judge_models": ("openai/n",), **changes.get("settings", {})})
    base, allowed = said.judge_api_base or None, frozenset({"openai/m", *said.judge_models})
    judges = Judges(said.judge_model, allowed, api_base=base, route=choose_route(said))
    return Engine(REGISTRY, judging=Judging(Named(), Cache(), judges), fits=fits)


ITEM = LabelledItem.model_validate(
    {
        "id": "a",
        "criterion": "result_groundedness",
        "group": "g",
        "payload": {"amount_cents": 5400, "order_id": "W-881234"},
        "answer": "It is $54.00.",
        "labels": [{"annotator": "ana", "label": True}],
    }
)


def fit_of(said: Prediction, **more: Any) -> Fit:
    one = said.binding
    bound = {"judge": one.judge, "judge_digest": one.digest, "model": one.model, "assembly": one.assembly}
    return make_fit(**bound, evidence=one.evidence, route=one.route, criterion=said.criterion, **more)


def predict(changes: Changes) -> Prediction:
    async def ask() -> list[object]:
        asking = AskSettings(build_rubric(changes))
        return [one async for one in collect_predictions(build_engine(changes), [ITEM], asking)]

    [said] = asyncio.run(ask())
    assert isinstance(said, Prediction)
    return said


def score(changes: Changes, fits: Sequence[Fit]) -> Report:
    events = [{"call": {"name": "tool", "arguments": {}}, "result": ITEM.payload}, {"assistant": ITEM.answer or ""}]
    trace: Any = {"format": "callgrade", "events": events}
    rubric: Any = build_rubric(changes).model_dump(mode="json")
    return asyncio.run(build_engine(changes, fits).score_async({"rubric": rubric, "trace": trace}))


PARTS: dict[str, tuple[Changes, ...]] = {
    "the question": ({"judge": {"question": "Is it so?"}}, {"judge": {"examples": []}},
     {"judge": {"max_chars": 5_000}}),
    "the votes": ({"judge": {"votes": 2}}, {"judge": {"temperature": 0.5}}, {"judge": {"reasoning": "low"}}),
    "the reply": ({"judge": {"max_tokens": 900}}, {"judge": {"threshold": 0.9}}, {"judge": {"claims": "mean"}}),
    "the model": ({"settings": {"judge_model": "openai/n"}}, {"judge": {"models": ["openai/m", "openai/n"]}}),
    "the evidence": ({"check": {"veto": 0.5}}, {"check": {"kind": "judge"}}, {"check": {"veto": None}}),
    "the address": ({"settings": {"judge_api_base": "http://127.0.0.1:1/v1"}},),
    "the form of replies": ({"settings": {"judge_reply": "tool"}},),
}  # fmt: skip


def join(some: Sequence[Changes]) -> Changes:
    found: dict[str, dict[str, Any]] = {"check": {}, "judge": {}, "settings": {}}
    for one in some:
        for name, members in one.items():
            found[name] |= members
    return found


@pytest.mark.parametrize("base", [(), ("the form of replies", "the address")], ids=["plain", "elsewhere"])
def test_what_calibration_asked_is_what_scoring_asks(base: tuple[str, ...]) -> None:
    changes = join([PARTS[name][0] for name in base])
    [outcome] = list_judged(score(changes, [fit_of(predict(changes))]), "result_groundedness")
    assert outcome.calibration.status == "calibrated"


SOME = st.lists(st.sampled_from(sorted(PARTS)), min_size=1, unique=True).flatmap(
    lambda names: st.tuples(*[st.sampled_from(PARTS[name]) for name in names])
)


@settings(max_examples=examples(40), deadline=None)
@given(SOME)
def test_any_change_of_any_part_leaves_the_outcome_open(some: tuple[Changes, ...]) -> None:
    report = score(join(some), [fit_of(predict({}))])
    [outcome] = list_judged(report, "result_groundedness")
    assert outcome.calibration.status == "mismatched"
    assert report.verdict == "undecided"


def test_another_way_to_put_questions_is_another_part() -> None:
    fit = fit_of(predict({}))
    [outcome] = list_judged(score({}, [fit.model_copy(update={"assembly": fit.assembly + 1})]), "result_groundedness")
    assert outcome.calibration.status == "mismatched"


# What is fitted of several questions is what scoring makes of them.

TURNS: Any = {
    "format": "callgrade",
    "events": [{"call": {"name": "tool", "arguments": {}}, "result": {"a": 1}},
     *[{said: f"{n}"} for n in range(3) for said in ("assistant", "user")], {"assistant": "end"}],
}  # fmt: skip


def reply_of(_: Ask, raw: float) -> tuple[JudgeReply, ...]:
    return (make_reply(min(JUDGE.scale), 0.0, graded=raw),)


RAW = st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9])
BOUNDS = st.sampled_from(
    [
        {},
        {"review_band": (0.25, 0.55)},
        {"guarantee": Guarantee(share=0.9, passes_from=0.7, fails_to=0.1)},
        {"guarantee": Guarantee(share=0.9, passes_from=0.9)},
        {"guarantee": Guarantee(share=0.9, fails_to=0.3)},
    ]
)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(RAW, min_size=4, max_size=4), BOUNDS)
def test_a_fit_decides_a_criterion_by_what_was_fitted_of_it(raws: list[float], bounds: dict[str, Any]) -> None:
    rubric = build_rubric({"check": {"kind": "judge"}})
    given_: Any = {"rubric": rubric.model_dump(mode="json"), "trace": TURNS}
    made = plan_request(read_request(given_), rubric)
    votes = {ask.key: reply_of(ask, raw) for ask, raw in zip(made.asks, raws, strict=True)}
    asking = AskSettings(rubric)
    [question] = asking.list_questions([ITEM])
    said = read_prediction(question.answer_id, conclude(made, votes, mode="live"), rubric)
    assert isinstance(said, Prediction)
    assert said.raw == min(raws)
    fit = fit_of(said, threshold=0.5, **bounds)
    report = conclude(made, votes, mode="live", fits=[fit])
    want = "undecided" if fit.is_unsure(said.raw, said.raw) else "pass" if voting.passes(said.raw, 0.5) else "fail"
    assert report.verdict == want

"""Juries that a judge lists: their fit is written, by their members' weights, and reached by the judge that lists them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from service import conclude, plan
from service.calibration.figures import Resampling
from service.calibration.options import ReportOptions
from service.calibration.predictions import AnswerId, MemberAnswer, Prediction
from service.calibration.report.rendering import render_report_markdown
from service.calibration.report_predictions import list_judged, read_prediction
from service.calibration.run import calibrate
from service.core.judging.fits.fit import Fit, join_models
from service.core.judging.judged_outcomes import JudgedScore
from service.core.judging.judges import Judge
from service.core.judging.notes import JudgeReply
from service.core.judging.prompts import Usage
from service.core.judging.questions import ASSEMBLY
from service.core.judging.replies import Judgement
from tests.calibration.label_sets import drawn

MODELS = ["m0", "m1", "m2"]
JUDGE: dict[str, Any] = {"id": "j", "level": "trace", "question": "?", "scale": {"yes": 1, "no": 0}}
RUBRIC: dict[str, Any] = {
    "id": "r",
    "judges": [{**JUDGE, "models": MODELS, "votes": 2}],
    "criteria": [{"id": "c", "stage": "integrate", "check": {"kind": "judge", "judge": "j"}}],
}
BOUND = {"judge": "j", "judge_digest": Judge.model_validate(RUBRIC["judges"][0]).digest, "assembly": ASSEMBLY}
QUICK = ReportOptions(resampling=Resampling(draws=0))


def as_jury(predictions: Sequence[Prediction]) -> list[Prediction]:
    """What judges said of each item as one answer of a jury."""
    said: dict[str, list[Prediction]] = {}
    for one in predictions:
        said.setdefault(one.id, []).append(one)
    return [
        several[0].model_copy(
            update={
                **BOUND,
                "model": join_models([one.model for one in several]),
                "members": tuple(
                    [MemberAnswer(model=one.model, raw=one.raw, cost_usd=0.01 * n) for n, one in enumerate(several)]
                ),
            }
        )
        for several in said.values()
    ]


@pytest.fixture(scope="module")
def jury_fit() -> Fit:
    labels, predictions = drawn(300, judges=(0.9, 0.7, 0.5), seed=5)
    run = calibrate(labels, as_jury(predictions), QUICK)
    [jury] = run.juries
    assert (jury.asked, jury.kept, jury.report.cost_usd) == (True, True, pytest.approx(0.03))
    return next(fit for fit in run.fits if fit.weights)


def reply(model: str, graded: float) -> JudgeReply:
    return JudgeReply(Judgement("no", 0.0, "so", graded=graded), model, model, "miss", Usage(1, 1, 0.5), 7.0)


@pytest.mark.parametrize("order", [MODELS, MODELS[::-1]])
def test_a_request_whose_judge_lists_the_models_is_decided_by_it(jury_fit: Fit, order: list[str]) -> None:
    rubric = {**RUBRIC, "judges": [{**RUBRIC["judges"][0], "models": order}]}
    made = plan({"rubric": rubric, "trace": {"format": "callgrade", "events": [{"user": "?"}, {"assistant": "!"}]}})
    grades = {"m0": (0.9, 0.8), "m1": (0.4, 0.4), "m2": (0.1, 0.3)}
    votes = tuple([reply(model, grade) for model in order for grade in grades[model]])
    report = conclude(made, {"c/": votes}, mode="live", fits=[jury_fit])
    [found] = list_judged(report, "c")
    assert isinstance(found, JudgedScore)
    assert (found.calibration.status, found.calibration.fit) == ("calibrated", jury_fit.id)
    means = {"m0": 0.85, "m1": 0.4, "m2": 0.2}
    assert found.raw == pytest.approx(sum(means[model] * weight for model, weight in jury_fit.weights.items()))
    said = read_prediction(AnswerId("a", "c"), report, made.rubric)
    assert isinstance(said, Prediction)
    assert {one.model: (one.raw, one.cost_usd, one.latency_ms) for one in said.members} == {
        model: (pytest.approx(mean), 1.0, 7.0) for model, mean in means.items()
    }


def test_the_report_shows_what_each_member_weighs_and_how_far_it_agrees() -> None:
    labels, predictions = drawn(400, judges=(0.9, 0.9, 0.5), seed=3)
    run = calibrate(labels, as_jury(predictions), QUICK)
    [jury] = run.juries
    assert jury.members[2].weight == min(one.weight for one in jury.members)
    assert "| j (m2) |" in render_report_markdown(run)
    agreement = jury.report.after.of("accuracy").value or 0
    assert max(one.agreement or 0 for one in jury.members) < agreement + 0.02

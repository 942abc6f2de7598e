"""Recorded judges of D2T-Eval, fitted to half of the payloads and asked through HTTP about the others: their fits decide."""

from __future__ import annotations

import asyncio
import json
from asyncio import gather
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from service import Report, plan
from service.calibration.figures import Resampling
from service.calibration.labels import LabelledItem
from service.calibration.options import ReportOptions
from service.calibration.run import calibrate
from service.calibration.splits import assign_folds
from service.core.judging.fits.fit import Fit, build_route, join_models
from service.core.judging.judged_outcomes import JudgedScore, OpenJudgement
from service.core.judging.prompts import Completion, Usage
from service.core.judging.questions import build_question
from service.core.judging.replies import read_judgement
from service.engine import Engine
from service.registry import Registry
from service.settings import Settings
from service.stats.agreement import ConfusionTable
from service.wiring import build_judging
from tests.bulk import WHOLE, share
from tests.faults.provider import Provider, serving
from tests.real.replayed import NAMES, Claims, answer_as_recorded, bind_jury, build_request, name_model, read_replies
from tests.real.test_labels_agreement import read

pytestmark = [pytest.mark.shared_data, pytest.mark.whole]

BEST = "o3-mini"
OTHERS = [name for name in NAMES if name != BEST]
JURY = NAMES if WHOLE else ["o3-mini", "claude-3-7-sonnet", "gpt4o"]


@dataclass(frozen=True)
class Replay:
    """One judge: its fit, the items held out with the verdicts of the run, and what it said of all of them."""

    model: str
    fit: Fit
    verdicts: Mapping[str, bool | None]
    held_out: Sequence[LabelledItem]
    replies: Mapping[tuple[str, str], Claims]


@pytest.fixture(scope="module")
def replays(shared_data: Path, recorded: Provider) -> Mapping[str, Replay]:
    found = read(shared_data, "groundedness_d2teval_cal")
    route = build_route(api_base=recorded.base())
    predictions = bind_jury([one for one in found.predictions if one.model in JURY], route)
    half = assign_folds(found.labels.items, folds=2)
    labels = replace(
        found.labels,
        items=tuple(
            [item.model_copy(update={"split": ("fit", "test")[half[item.group]]}) for item in found.labels.items]
        ),
    )
    run = calibrate(labels, predictions, ReportOptions(resampling=Resampling(draws=200 if WHOLE else 20)))
    items = {item.id: item for item in labels.items}
    replies = read_replies(shared_data)
    return {
        report.fit.model: Replay(
            report.fit.model,
            next(fit for fit in run.fits if fit.model == report.fit.model),
            {one.id: one.passed for one in report.items},
            share([items[one.id] for one in report.items], one_in=12),
            replies,
        )
        for report in [*run.judges, *[jury.report for jury in run.juries]]
    }


@pytest.fixture(scope="module")
def recorded() -> Iterator[Provider]:
    """A provider that answers as it is told."""
    with serving(Provider()) as server:
        yield server


def reports_of(
    provider: Provider,
    home: Path,
    replay: Replay,
    fits: Iterable[Fit],
    *,
    most: int | None = None,
    models: Sequence[str] = (),
) -> list[tuple[LabelledItem, Report]]:
    """The reports on the held-out items, with the recorded words of the judge, or of all models of a jury, as replies."""
    items = replay.held_out[:most]
    answer_as_recorded(provider, replay.replies, items)
    settings = Settings(
        judge_model=f"openai/{replay.model}",
        judge_models=tuple([f"openai/{one}" for one in models]),
        judge_api_base=provider.base(),
        judge_api_key="none",
        home=home,
    )
    engine = Engine(Registry(), judging=build_judging(settings), fits=tuple(fits))

    async def score_all() -> list[Report]:
        try:
            return await gather(
                *[engine.score_async(build_request(number, item, models)) for number, item in enumerate(items)]
            )
        finally:
            await engine.close()

    return list(zip(items, asyncio.run(score_all()), strict=True))


def kappa_of(reports: Iterable[tuple[LabelledItem, Report]]) -> float | None:
    """How far verdicts agree with humans, undecided ones left out."""
    seen = Counter((report.verdict == "pass", item.passes) for item, report in reports if report.verdict != "undecided")
    return ConfusionTable(seen[True, True], seen[True, False], seen[False, True], seen[False, False]).kappa


@pytest.mark.parametrize("name", [BEST, *[pytest.param(name, marks=pytest.mark.chaos) for name in OTHERS]])
def test_a_fit_decides_as_it_said_it_would(
    replays: Mapping[str, Replay], recorded: Provider, tmp_path: Path, name: str
) -> None:
    replay = replays[f"recorded-{name}"]
    found = reports_of(recorded, tmp_path, replay, [replay.fit])
    for _, report in found:
        [outcome] = report.criteria[0].outcomes
        assert isinstance(outcome.outcome, JudgedScore | OpenJudgement)
        calibration = outcome.outcome.calibration
        assert calibration.status in ("calibrated", "out_of_domain")
        assert (report.verdict == "undecided") is (calibration.needs_human or calibration.status == "out_of_domain")
        if isinstance(outcome.outcome, JudgedScore):
            assert report.verdict == ("pass" if outcome.outcome.value >= replay.fit.threshold else "fail")
    assert_served_as_the_run_says(replay, found)


def assert_served_as_the_run_says(replay: Replay, found: Iterable[tuple[LabelledItem, Report]]) -> None:
    """Each verdict that is given is the one of the run on that item; more or less as it says, they agree with humans."""
    decided = [(item, report) for item, report in found if report.verdict != "undecided"]
    assert {item.id: report.verdict == "pass" for item, report in decided} == {
        item.id: replay.verdicts[item.id] for item, _ in decided
    }
    said, kappa = replay.fit.statistics["kappa"], kappa_of(decided)
    assert kappa is not None
    if WHOLE and (said.value or 0) > 0.3:  # what is left to humans is not the surest: without it verdicts agree more
        assert kappa > (said.low or 1)
        assert {report.verdict for _, report in decided} == {"pass", "fail"}


def test_a_jury_is_served_by_the_weights_it_was_fitted_with(
    replays: Mapping[str, Replay], recorded: Provider, tmp_path: Path
) -> None:
    """Its judge lists the models in another order than the fit names them."""
    models = [name_model(name) for name in reversed(JURY)]
    replay = replays[join_models(models)]
    found = reports_of(recorded, tmp_path, replay, [replay.fit], most=None if WHOLE else 40, models=models)
    served = [report.criteria[0].outcomes[0].outcome for _, report in found]
    decided = [one for one in served if isinstance(one, JudgedScore)]
    assert {one.calibration.status for one in decided} == {"calibrated"}
    assert {one.calibration.fit for one in decided} == {replay.fit.id}
    for one in decided:
        raw = {vote.model: vote.raw for vote in one.judge.votes if vote.raw is not None}
        assert one.raw == pytest.approx(sum(raw[model] * weight for model, weight in replay.fit.weights.items()))
    assert_served_as_the_run_says(replay, found)
    missing = reports_of(recorded, tmp_path, replay, [replay.fit], most=5, models=[*models[1:], "fault-500"])
    assert {report.verdict for _, report in missing} == {"undecided"}


def test_what_is_recorded_becomes_replies_that_are_graded_alike(shared_data: Path) -> None:
    """The mapping by which recorded judges are asked as live ones: the value of every reply is that of the importer."""
    found, replies = read(shared_data, "groundedness_d2teval_cal"), read_replies(shared_data)
    items = {item.id: item for item in found.labels.items}
    for one in share(found.predictions, one_in=40):
        made = plan(build_request(0, items[one.id]))
        question = build_question(made.asks[0], made.trace)
        reply = json.dumps({"token": "t", "claims": replies[name_model(one.model), one.id]})
        said = read_judgement(Completion(reply, "m", Usage()), question, "t")
        assert (said.low.graded, said.best, said.left_out) == (one.raw, None, ())
        assert (said.value == 1.0) is (one.raw == 1.0)

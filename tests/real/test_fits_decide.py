"""Recorded judges of D2T-Eval, fitted to half of the payloads and asked through HTTP about the others: their fits decide."""

from __future__ import annotations

import asyncio
import re
from asyncio import gather
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from service import Report
from service.calibration.figures import Resampling
from service.calibration.labels import LabelledItem
from service.calibration.options import ReportOptions
from service.calibration.predictions import Prediction, group_by_judge
from service.calibration.run import calibrate
from service.core.judging.fits import Fit
from service.core.judging.judges import Judge
from service.core.judging.questions import ASSEMBLY
from service.core.judging.votes import JudgedScore
from service.core.judging.withheld import WithheldJudgement
from service.engine import Engine
from service.registry import Shelf
from service.settings import Settings
from service.stats.agreement import ConfusionTable
from service.wiring import build_judging
from tests.bulk import WHOLE
from tests.faults.provider import Asked, Provider, serving
from tests.real.test_labels_agreement import read

pytestmark = pytest.mark.shared_data

MOST_ERRORS = 15
JUDGE: dict[str, Any] = {
    "id": "errors",
    "level": "turn",
    "shows": ["conversation", "said"],
    "question": "How many statements of the text do the results contradict?",
    "scale": {f"errors_{count}": 1 / (1 + count) for count in range(MOST_ERRORS + 1)},
}
RUBRIC: dict[str, Any] = {
    "id": "grounded_alone",
    "judges": [JUDGE],
    "criteria": [{"id": "grounded", "stage": "integrate", "check": {"kind": "judge", "judge": "errors"}}],
}
DIGEST = Judge.model_validate(JUDGE).digest
BEST = "o3-mini"
OTHERS = ["llama3-3", "claude-3-7-sonnet", "gpt4o", "deepseek-r1", "gemini-2-0-flash-thinking"]
NUMBER = re.compile(r"Item ([0-9]+)\.")


@dataclass(frozen=True)
class Replay:
    """One judge: its fit, the items held out, and what it said of all of them."""

    model: str
    fit: Fit
    held_out: Sequence[LabelledItem]
    raw: Mapping[str, float]


def bound(one: Prediction) -> Prediction:
    """As if our judge had said it."""
    return one.model_copy(
        update={"judge": "errors", "judge_digest": DIGEST, "model": f"recorded-{one.model}", "assembly": ASSEMBLY}
    )


@pytest.fixture(scope="module")
def replays(shared_data: Path) -> Mapping[str, Replay]:
    found = read(shared_data, "groundedness_d2teval_cal")
    predictions = [bound(one) for one in found.predictions if WHOLE or one.model == BEST]
    run = calibrate(found.labels, predictions, ReportOptions(resampling=Resampling(draws=200), jury=False))
    items = {item.id: item for item in found.labels.items}
    raw = {one.binding.model: one.raw for one in group_by_judge(predictions)}
    return {
        report.model: Replay(
            report.model,
            next(fit for fit in run.fits if fit.model == report.model),
            [items[one.id] for one in report.items],
            {name: values[0] for (name, _), values in raw[report.model].items()},
        )
        for report in run.report.judges
    }


@pytest.fixture(scope="module")
def recorded() -> Iterator[Provider]:
    """A provider that answers as it is told."""
    with serving(Provider()) as server:
        yield server


def request_for(number: int, item: LabelledItem) -> dict[str, Any]:
    events = [
        {"user": f"Item {number}."},
        {"call": {"name": "look"}, "result": item.payload},
        {"assistant": item.answer},
    ]
    return {"rubric": RUBRIC, "trace": {"format": "callgrade", "id": item.id, "events": events}}


def reports_of(
    provider: Provider, home: Path, replay: Replay, fits: Iterable[Fit], *, most: int | None = None
) -> list[tuple[LabelledItem, Report]]:
    """The reports on the held-out items, with the recorded words of the judge as replies."""
    items = replay.held_out[:most]

    def label_of(asked: Asked) -> str:
        said = NUMBER.search(asked.text)
        assert said is not None
        return f"errors_{round(1 / replay.raw[items[int(said[1])].id] - 1)}"

    provider.label_of = label_of
    settings = Settings(
        judge_model=f"openai/{replay.model}", judge_api_base=provider.base(), judge_api_key="none", home=home
    )
    engine = Engine(Shelf(), judging=build_judging(settings, {}), fits=tuple(fits))

    async def score_all() -> list[Report]:
        try:
            return await gather(*[engine.score_async(request_for(number, item)) for number, item in enumerate(items)])
        finally:
            await engine.close()

    return list(zip(items, asyncio.run(score_all()), strict=True))


def kappa_of(reports: Iterable[tuple[LabelledItem, Report]]) -> float | None:
    """How far verdicts agree with humans, those that abstain left out."""
    seen = Counter((report.verdict == "pass", item.passes) for item, report in reports if report.verdict != "abstain")
    return ConfusionTable(seen[True, True], seen[True, False], seen[False, True], seen[False, False]).kappa


@pytest.mark.parametrize("name", [BEST, *[pytest.param(name, marks=pytest.mark.chaos) for name in OTHERS]])
def test_a_fit_decides_as_it_said_it_would(
    replays: Mapping[str, Replay], recorded: Provider, tmp_path: Path, name: str
) -> None:
    replay = replays[f"recorded-{name}"]
    found = reports_of(recorded, tmp_path, replay, [replay.fit])
    for _, report in found:
        [outcome] = report.criteria[0].outcomes
        assert isinstance(outcome.outcome, JudgedScore | WithheldJudgement)
        calibration = outcome.outcome.calibration
        assert calibration.status in ("calibrated", "out_of_domain")
        assert (report.verdict == "abstain") is (calibration.ask_a_human or calibration.status == "out_of_domain")
        if isinstance(outcome.outcome, JudgedScore):
            assert report.verdict == ("pass" if outcome.outcome.value >= replay.fit.threshold else "fail")
    said, kappa = replay.fit.statistics["kappa"], kappa_of(found)
    assert said.low is not None
    assert said.high is not None
    assert kappa is not None
    if (said.value or 0) > 0.3:
        assert {"pass", "fail"} <= {report.verdict for _, report in found}
        assert said.low <= kappa <= said.high


OTHER_FITS = {
    "made with another snapshot of the model": {"model": "recorded-o3-mini-2020-01-01"},
    "of another model": {"model": "another"},
    "of another version of the judge": {"judge_digest": "0" * 64},
    "too old": {"stale": True},
    "of other raw values": {"domain": (0.001, 0.002)},
}


@pytest.mark.parametrize("changes", OTHER_FITS.values(), ids=OTHER_FITS)
def test_a_fit_that_does_not_apply_lets_nothing_pass(
    replays: Mapping[str, Replay], recorded: Provider, tmp_path: Path, changes: dict[str, Any]
) -> None:
    replay = replays["recorded-o3-mini"]
    fit = Fit.model_validate({**replay.fit.model_dump(), **changes})
    found = reports_of(recorded, tmp_path, replay, [fit], most=20)
    assert {report.verdict for _, report in found} == {"abstain"}

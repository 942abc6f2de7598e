"""A recorded judge of the steps of agents, fitted to half of the queries and asked through HTTP about the other runs, whole.

The mapping was fixed before anything was fitted. What was recorded of a message is the reply about each call in it: 1 is
`right`, 0 `neutral`, -1 `wrong`; it quotes the name of the tool.
Messages without a call are texts, of which the judge of steps is not asked.
"""

from __future__ import annotations

import asyncio
import json
import re
from asyncio import gather
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from service import Report, plan
from service.calibration.figures import Resampling
from service.calibration.labels import LabelledItem, LabelledSet
from service.calibration.options import ReportOptions
from service.calibration.predictions import Prediction
from service.calibration.results import CalibrationReport
from service.calibration.run import calibrate
from service.calibration.splits import assign_folds
from service.core.judging.fits.fit import build_route
from service.core.judging.judged_outcomes import JudgedScore, OpenJudgement
from service.core.judging.prompts import Completion, Usage
from service.core.judging.questions import ASSEMBLY, build_question
from service.core.judging.replies import read_judgement
from service.engine import Engine
from service.labelling.predictions import find_own_steps
from service.reading.request import read_request, read_request_trace
from service.registry import Registry
from service.settings import Settings
from service.stats.agreement import ConfusionTable
from service.wiring import build_judging
from tests.bulk import WHOLE, share
from tests.faults.provider import Asked, Provider, serving
from tests.real.test_process_bench import read

pytestmark = pytest.mark.shared_data

JUDGE = Registry().judges["step_quality"]
NAME = "deepseek-v3.2-thinking"  # of those who were recorded, one that the labels show to be useful
LABELS = {1.0: "right", 0.5: "neutral", 0.0: "wrong"}
RUN = re.compile(r"Run ([0-9]+)\.")
STEP = re.compile(r'^result: .*?"path": "/steps/([0-9]+)/result', re.MULTILINE)


@dataclass(frozen=True)
class RecordedRun:
    """One run: its trace, the item of each of its calls, and what was recorded of these."""

    trace: dict[str, Any]
    items: tuple[LabelledItem, ...]
    said: Mapping[str, Prediction]

    def reply(self, step: int) -> dict[str, Any]:
        """What the judge says of a call."""
        item = self.items[step]
        tool = (item.trace or {})["messages"][item.position]["tool_calls"][0]["function"]["name"]
        return {"reason": "so it was recorded", "quotes": [tool], "label": LABELS[self.said[item.id].raw]}


@pytest.fixture(scope="module")
def runs(shared_data: Path) -> Sequence[RecordedRun]:
    """The runs that have messages, and on each of whose calls the judge said something."""
    found = read(shared_data / "process_bench", "steps_dev")
    said = {one.id: one for one in found.predictions if one.model == NAME}
    by_run: dict[str, list[LabelledItem]] = {}
    for item in found.labels.items:
        if item.trace is not None:
            by_run.setdefault(item.run, []).append(item)
    made = [build_run(sorted(items, key=lambda one: one.position), said) for items in by_run.values()]
    return [one for one in made if one.items and all(item.id in said for item in one.items)]


def build_run(items: Sequence[LabelledItem], said: Mapping[str, Prediction]) -> RecordedRun:
    calling = [item for item in items for _ in own_steps(item)]
    return RecordedRun(dict(items[-1].trace or {}), tuple(calling), said)


def own_steps(item: LabelledItem) -> frozenset[int]:
    found = find_own_steps(item, read_request_trace(read_request({"trace": item.trace})))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def recorded() -> Iterator[Provider]:
    with serving(Provider()) as server:
        yield server


@pytest.fixture(scope="module")
def fitted(runs: Sequence[RecordedRun], recorded: Provider) -> CalibrationReport:
    items = list({item.id: item for one in runs for item in one.items}.values())
    half = assign_folds(items, folds=2)
    sided = [one.model_copy(update={"split": ("fit", "test")[half[one.group]]}) for one in items]
    bound = {
        "judge": JUDGE.id,
        "judge_digest": JUDGE.digest,
        "model": "recorded",
        "assembly": ASSEMBLY,
        "route": build_route(api_base=recorded.base()),
    }
    said = [runs[0].said[one.id].model_copy(update=bound) for one in items]
    labels = LabelledSet(tuple(sided), {one.key: at for at, one in enumerate(sided, 1)}, "hotpotqa")
    return calibrate(labels, said, ReportOptions(resampling=Resampling(draws=200 if WHOLE else 20)))


def build_body(number: int, run: RecordedRun) -> dict[str, Any]:
    """The run as a request, with its number in front."""
    criterion = {"id": "step_quality", "stage": "arguments", "aggregate": "min"}
    rubric = {
        "id": "steps_alone",
        "judges": [JUDGE.model_dump(mode="json")],
        "criteria": [{**criterion, "check": {"kind": "judge", "judge": JUDGE.id}}],
    }
    first, *rest = run.trace["messages"]
    marked = {**first, "content": f"Run {number}. {first['content']}"}
    return {"rubric": rubric, "trace": {**run.trace, "messages": [marked, *rest]}}


def test_what_is_recorded_becomes_replies_that_are_graded_alike(runs: Sequence[RecordedRun]) -> None:
    """The mapping: the value of every reply is that of the importer."""
    assert (len(runs), sum(len(one.items) for one in runs)) == (126, 300)
    for run in share(runs, one_in=6):
        made = plan(build_body(0, run))
        assert len(made.asks) == len(run.items)
        for ask, item in zip(made.asks, run.items, strict=True):
            reply = json.dumps({"token": "t", **run.reply(ask.step or 0)})
            said = read_judgement(Completion(reply, "m", Usage()), build_question(ask, made.trace), "t")
            assert (said.value, said.low.graded) == (run.said[item.id].raw,) * 2


def score_all(provider: Provider, runs: Sequence[RecordedRun], made: CalibrationReport, home: Path) -> list[Report]:
    def reply_of(asked: Asked) -> dict[str, Any]:
        text = asked.messages[-1]["content"]
        run, step = RUN.search(text), STEP.search(text)
        assert run is not None
        assert step is not None
        return runs[int(run[1])].reply(int(step[1]))

    provider.reply_of = reply_of
    settings = Settings(judge_model="openai/recorded", judge_api_base=provider.base(), judge_api_key="none", home=home)
    engine = Engine(Registry(), judging=build_judging(settings), fits=made.fits)

    async def score() -> list[Report]:
        try:
            return await gather(*[engine.score_async(build_body(at, run)) for at, run in enumerate(runs)])
        finally:
            await engine.close()

    return asyncio.run(score())


def test_a_fit_decides_steps_as_it_said_it_would(
    runs: Sequence[RecordedRun], fitted: CalibrationReport, recorded: Provider, tmp_path: Path
) -> None:
    [judge], [fit] = fitted.judges, fitted.fits
    offline = {one.id: one for one in judge.items}
    held_out = [run for run in runs if run.items[0].id in offline]
    seen = Counter[tuple[bool, bool]]()
    for run, report in zip(held_out, score_all(recorded, held_out, fitted, tmp_path), strict=True):
        decided: list[bool | None] = []
        for item, step in zip(run.items, report.steps, strict=True):
            outcome = step.outcomes["step_quality"]
            assert isinstance(outcome, JudgedScore | OpenJudgement)
            assert outcome.calibration.status == "calibrated"
            assert outcome.calibration.fit == fit.id
            assert outcome.raw == offline[item.id].raw
            passed = outcome.passed if isinstance(outcome, JudgedScore) else None
            assert passed in (offline[item.id].passed, None)
            decided.append(passed)
            if passed is not None:
                seen[passed, item.passes] += 1
        unread = any(part.kind == "call" for part in report.unread)  # one run wrote a call into its text
        want = "fail" if False in decided else "undecided" if None in decided or unread else "pass"
        assert report.verdict == want
    kappa = ConfusionTable(seen[True, True], seen[True, False], seen[False, True], seen[False, False]).kappa
    said = fit.statistics["kappa"]
    assert (said.low or 1) <= (kappa or 0) <= (said.high or 0)
    assert fit.route == build_route(api_base=recorded.base())
    assert replace(fit.binding, route="") != fit.binding

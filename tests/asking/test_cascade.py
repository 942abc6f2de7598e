"""A cascade through the engine and a provider: the strong model is asked of what the cheap one leaves, and of nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from service.core.report import Report
from service.engine import Engine
from service.registry import Registry
from service.settings import Settings
from service.wiring import build_judging, choose_route
from tests.core.test_judge_cascades import CHEAP, STRONG, fit_of, rubric
from tests.core.test_require_calibration import body
from tests.faults.provider import Asked, Provider, serving

CHEAP_SAYS = {"first": "yes", "second": "unsure", "third": "unsure"}
STRONG_SAYS = {"second": "no", "third": "rather"}


def score_all(home: Path) -> tuple[dict[str, Report], Counter[str]]:
    """The reports on three answers, and how often each model was asked."""
    asked = Counter[str]()

    def label_of(one: Asked) -> str:
        model = one.body["model"]
        asked[model] += 1
        said = CHEAP_SAYS if model == "m1" else STRONG_SAYS
        return next(label for name, label in said.items() if f"It is the {name} order." in one.text)

    provider = Provider()
    provider.label_of = label_of
    judges = [{**CHEAP, "models": ["openai/m1"]}, {**STRONG, "models": ["openai/m2", "openai/m3"]}]
    made: dict[str, Any] = {**rubric(guarantee=0.9), "judges": judges}
    registry = Registry()
    cheap, strong = (registry.find(_read(made)).judges_by_id[name] for name in ("cheap", "strong"))
    with serving(provider) as server:
        settings = Settings(judge_model="openai/m0", judge_api_base=server.base(), judge_api_key="none", home=home)
        route = choose_route(settings)
        first = fit_of("cheap", judge_digest=cheap.digest, route=route)
        fits = (first, fit_of("strong", judge_digest=strong.digest, route=route, after=first.id))
        judging = build_judging(settings)
        engine = Engine(registry, judging=judging, fits=fits)
        registry.add(_read(made))

        async def run() -> dict[str, Report]:
            try:
                told = {name: body("r", answer=f"It is the {name} order.") for name in CHEAP_SAYS}
                return {name: await engine.score_async(one) for name, one in told.items()}
            finally:
                await engine.close()

        return asyncio.run(run()), asked


def _read(made: dict[str, Any]) -> Any:
    from service.registry import read_rubric

    return read_rubric(made)


def test_the_strong_judge_is_asked_of_what_is_left(tmp_path: Path) -> None:
    reports, asked = score_all(tmp_path)
    assert {name: report.verdict for name, report in reports.items()} == {
        "first": "pass",
        "second": "fail",
        "third": "undecided",
    }
    assert asked == {"m1": 3, "m2": 2, "m3": 2}
    assert [report.provenance.replies for report in reports.values()] == [1, 3, 3]
    assert reports["second"].provenance.judge_model == "m1, m2, m3"

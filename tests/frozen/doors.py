"""All that these tests import of callgrade. Where a thing moves or is renamed, only this module follows."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from service import Engine, InputError, Registry, plan, report_json, score
from service.asking.demo_judge import DemoJudge
from service.asking.judging import Judges, Judging
from service.cli import main
from service.core.judging.questions import build_question
from service.core.report import STAND_IN
from service.reading.packaged_files import read_yaml
from service.wiring import build_demo_judging
from tests.replies import MemoryCache

Json = Any

CLOCK = re.compile(rb'"latency_ms":[0-9.e+-]+')
"""The one thing in a report that depends on the machine."""


class Judge:
    """The engine with the stand-in as its judge, in an event loop of its own."""

    def __init__(self) -> None:
        self._engine = Engine(Registry(), judging=build_demo_judging())
        self._loop = asyncio.Runner()

    def score(self, body: Json) -> bytes:
        """The report, without what the clock said."""
        report = self._loop.run(self._engine.score_async(body))
        return CLOCK.sub(b'"latency_ms":0', report_json(report))


@cache
def judge() -> Judge:
    """One for all."""
    return Judge()


def score_body(body: Json, mode: str) -> tuple[bytes, list[str]]:
    """The report of a request, or no bytes and what is wrong with the request. `mode`: off, live, or unsaid."""
    body = {name: value for name, value in body.items() if name not in ("judges", "judge_model", "sandbox")}
    body |= {} if mode == "unsaid" else {"judges": mode}
    try:
        return (judge().score(body) if mode == "live" else report_json(score(body))), []
    except InputError as error:
        return b"", [f"{problem.path}: {problem.message}" for problem in error.problems]


def read_table(text: str, source: str) -> Json:
    """A table of cases in YAML."""
    return read_yaml(text, source=source)


def rubric_ids() -> list[str]:
    """The bundled rubrics."""
    return [rubric.id for rubric in Registry()]


def judge_digests() -> dict[str, str]:
    """The digest of each bundled judge."""
    return {name: judge.digest for name, judge in Registry().judges.items()}


def judge_levels() -> dict[str, str]:
    """What each bundled judge is asked about."""
    return {name: judge.level for name, judge in Registry().judges.items()}


def cache_keys(body: Json) -> Iterator[tuple[str, str]]:
    """(judge, key) of each question that a request puts: plain, and of another tenant, model, address and sample."""
    made = plan(body)
    for ask in made.asks:
        question = build_question(ask, made.trace)
        yield ask.judge.id, question.key(tenant="", model="openai/m", api_base=None, sample=0)
        yield ask.judge.id, question.key(tenant="t", model="m", api_base="http://127.0.0.1/v1", sample=1)


def replies_kept(body: Json, before: dict[str, str]) -> tuple[dict[str, str], int]:
    """What the cache holds once a request is scored with the stand-in, and how many replies came out of it."""
    cache = MemoryCache()
    cache.texts.update(before)
    engine = Engine(Registry(), judging=Judging(DemoJudge(), cache, Judges(STAND_IN)))
    report = asyncio.run(engine.score_async({**body, "judges": "live"}))
    return cache.texts, report.provenance.cache_hits


def run_command(*args: str) -> int:
    """The exit code of a command in this process."""
    return main(list(args))

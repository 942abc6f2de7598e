"""Digests and keys by which kept answers are found again: an answer that is paid for stays one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import islice

from service import Engine, Registry, plan
from service.asking.demo_judge import DemoJudge
from service.asking.judging import Judges, Judging
from service.core.judging.questions import build_question
from service.core.report import STAND_IN
from tests.frozen.cases import Json, read_cases
from tests.frozen.golden import canonical, differences, read_golden, write_golden
from tests.replies import MemoryCache

FILE = "keys.json"

CACHED = "demo: 10"
"""A case whose replies are kept."""

KEYS = 6
"""Cache keys of each judge."""


def make_keys() -> Json:
    """All of it."""
    kept = replies_kept(read_cases()[CACHED], {})[0]
    return json.loads(
        canonical(
            {
                "judges": {name: judge.digest for name, judge in Registry().judges.items()},
                "cache keys": _keys(),
                "cached replies": kept,
            }
        )
    )


def write_keys() -> None:
    """Writes what is so now."""
    write_golden(FILE, make_keys())


def check_keys() -> list[str]:
    """What differs from what was kept."""
    return differences(read_golden(FILE), make_keys(), most=20)


def _keys() -> dict[str, list[str]]:
    """Some keys of each judge: of cases that ask it, and of a rubric that asks it of any trace."""
    found: dict[str, list[str]] = {name: [] for name in Registry().judges}
    for judge, key in _all_keys():
        if len(found[judge]) < KEYS and key not in found[judge]:
            found[judge].append(key)
    assert all(found.values()), found
    return found


def _all_keys() -> Iterator[tuple[str, str]]:
    bodies = [body for name, body in read_cases().items() if name.startswith(("demo", "same", "wrong", "critic: 7"))]
    for body in bodies:
        yield from cache_keys({**body, "rubric": "four_step"})
    for name in Registry().judges:
        check = {"kind": "judge", "judge": name}
        rubric = {"id": "one", "criteria": [{"id": "it", "stage": "arguments", "check": check}]}
        asked = ({"trace": body["trace"], "rubric": rubric} for body in bodies)
        yield from islice((pair for body in asked for pair in cache_keys(body)), KEYS)


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

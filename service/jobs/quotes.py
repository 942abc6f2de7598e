"""Estimate a batch: how many questions its judges get, how many the cache answers, and the most the rest may cost."""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from pydantic import TypeAdapter

from service.asking.judging import Judging
from service.core.money import Cost
from service.core.plan import Plan
from service.engine import Engine
from service.reading.request import ScoreRequest, read_request
from service.reading.strict_json import Limits, parse_strictly
from service.store.jobs.submission import Chunk

MAX_SAMPLED_ITEMS = 2_000
"""Items that are inspected; from a larger batch a sample of this size is drawn, the same in every run."""

PLAN_BLOCK_ITEMS = 16
"""Items that are planned at once, in a thread."""


@dataclass(frozen=True, slots=True)
class Quote:
    """What a batch would take if it ran now. If only a sample was inspected, its figures are scaled up."""

    items: int
    questions: int
    """Questions put to judges or answered from the cache."""
    cache_hits: int
    """How many of them the cache answers."""
    cost_usd: float | None
    """The most that the others may cost, as far as prices are known; null where none is."""
    sampled: int
    """How many items were inspected."""
    unpriced_calls: int = 0
    """How many of the others have no known price, and are not in `cost_usd`."""


QUOTE: TypeAdapter[Quote] = TypeAdapter(Quote)


class _PlannedRequest(NamedTuple):
    request: ScoreRequest
    plan: Plan


async def build_quote(
    engine: Engine, chunks: Iterable[Chunk], *, limits: Limits, tenant: str, most: int = MAX_SAMPLED_ITEMS
) -> Quote:
    """Quote the items in `chunks`, inspecting at most `most` of them; `limits` apply to each."""
    total = await asyncio.to_thread(lambda: sum(chunk.size for chunk in chunks))
    chosen = _draw_sample(total, most)
    questions = hits = 0
    cost = Cost()
    lines = _read_lines(chunks, chosen)
    while plans := await asyncio.to_thread(_plan_next, engine, lines, limits):
        for one in plans:
            if one is None or engine.judging is None or not engine.asks_judges(one.request):
                continue
            count, cached, price = await _count_questions(engine.judging, one, engine.choose_mode(one.request), tenant)
            questions, hits = questions + count, hits + cached
            cost += price
    factor = total / len(chosen)
    cost = Cost(cost.usd * factor, round(cost.unpriced * factor))
    return Quote(total, round(questions * factor), round(hits * factor), cost.known_usd, len(chosen), cost.unpriced)


async def _count_questions(judging: Judging, one: _PlannedRequest, mode: str, tenant: str) -> tuple[int, int, Cost]:
    """Return the number of questions and of cache hits, and the price of the rest."""
    asks, trace, model = one.plan.asks, one.plan.trace, one.request.judge_model
    cached = frozenset[str]() if mode == "fresh" else await judging.find_cached(asks, trace, model=model, tenant=tenant)
    rest = [] if mode == "cached" else [ask for ask in asks if ask.key not in cached]
    estimates = await judging.estimate(rest, trace, model=model)
    return len(asks), len(cached), sum([Cost.of(one.cost_usd) for one in estimates.values()], Cost())


def _draw_sample(total: int, most: int) -> frozenset[int]:
    return frozenset(random.Random(0).sample(range(total), min(total, most)))  # noqa: S311 (no secret)


def _read_lines(chunks: Iterable[Chunk], chosen: frozenset[int]) -> Iterator[bytes]:
    for chunk in chunks:
        if any(n in chosen for n in range(chunk.first, chunk.first + chunk.size)):
            for n, line in enumerate(zlib.decompress(chunk.payload).splitlines(), start=chunk.first):
                if n in chosen:
                    yield line


def _plan_next(engine: Engine, lines: Iterator[bytes], limits: Limits) -> Sequence[_PlannedRequest | None]:
    """Plan the next items; None for one that will be an error."""
    return [_plan(engine, line, limits) for line in islice(lines, PLAN_BLOCK_ITEMS)]


def _plan(engine: Engine, line: bytes, limits: Limits) -> _PlannedRequest | None:
    item = parse_strictly(line, limits)
    if not isinstance(item, dict):
        return None
    try:
        request = read_request(item["request"])
        return _PlannedRequest(request, engine.plan(request))
    except Exception:  # noqa: BLE001 (a fault of ours is that item's outcome too)
        return None

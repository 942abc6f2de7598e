"""Estimate a batch: how many questions its judges get, how many the cache answers, and the most the rest may cost."""

from __future__ import annotations

import asyncio
import random
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import cast

from pydantic import JsonValue, TypeAdapter

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


async def build_quote(
    engine: Engine, chunks: Iterable[Chunk], *, limits: Limits, tenant: str, most: int = MAX_SAMPLED_ITEMS
) -> Quote:
    """Quote the items in `chunks`, inspecting at most `most` of them; `limits` apply to each."""
    total = await asyncio.to_thread(lambda: sum(chunk.size for chunk in chunks))
    chosen = frozenset(random.Random(0).sample(range(total), min(total, most)))  # noqa: S311 (no secret)
    questions = hits = 0
    cost = Cost()
    lines = _read_lines(chunks, chosen)
    while block := await asyncio.to_thread(lambda: list(islice(lines, PLAN_BLOCK_ITEMS))):
        for request, plan in await asyncio.to_thread(_plan, engine, block, limits):
            if engine.judging is None or not engine.asks_judges(request):
                continue
            asks, trace, model, mode = plan.asks, plan.trace, request.judge_model, engine.choose_mode(request)
            cached = frozenset[str]()
            if mode != "fresh":
                cached = await engine.judging.find_cached(asks, trace, model=model, tenant=tenant)
            rest = [] if mode == "cached" else [ask for ask in asks if ask.key not in cached]
            estimates = await engine.judging.estimate(rest, trace, model=model)
            questions, hits = questions + len(asks), hits + len(cached)
            cost += sum([Cost.of(one.cost_usd) for one in estimates.values()], Cost())
    factor = total / len(chosen)
    cost = Cost(cost.usd * factor, round(cost.unpriced * factor))
    return Quote(total, round(questions * factor), round(hits * factor), cost.known_usd, len(chosen), cost.unpriced)


def _read_lines(chunks: Iterable[Chunk], chosen: frozenset[int]) -> Iterator[bytes]:
    for chunk in chunks:
        if any(n in chosen for n in range(chunk.first, chunk.first + chunk.size)):
            for n, line in enumerate(zlib.decompress(chunk.payload).splitlines(), start=chunk.first):
                if n in chosen:
                    yield line


def _plan(engine: Engine, lines: Iterable[bytes], limits: Limits) -> list[tuple[ScoreRequest, Plan]]:
    """Plan items; leave out those that will be an error, whether the sender's or ours."""
    found: list[tuple[ScoreRequest, Plan]] = []
    for line in lines:
        with suppress(Exception):
            item = cast("dict[str, JsonValue]", parse_strictly(line, limits))
            request = read_request(item["request"])
            found.append((request, engine.plan(request)))
    return found

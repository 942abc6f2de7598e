"""Two tenants share a judge, and one makes it fail in every way it can: the other's questions are all answered."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from statistics import quantiles

import pytest

from service.api.app import create_app
from service.settings import Settings
from service.store.access.keys import Keys
from service.wiring import build_engine
from tests.api.asgi_caller import bearer, exchange
from tests.api.test_judged import body, judged
from tests.faults.provider import Provider
from tests.stores import open_new_store

ANSWERED = ["400", "403", "filter", "refusal", "not-json", "length"]
"""What a provider says to a request and not of itself."""

BROKEN = ["hang", "500", "reset", "401"]
"""What ends a tenant's own questions: the provider looks as if it were down, or refuses the key."""

AT_ONCE = 40


@pytest.mark.parametrize("requests", [160, pytest.param(2_000, marks=pytest.mark.chaos)])
def test_a_hostile_tenant_costs_the_other_no_judged_score(provider: Provider, tmp_path: Path, requests: int) -> None:
    provider.obeys, provider.now = True, time.monotonic
    settings = Settings(
        judge_model="openai/good",
        judge_api_base=provider.base(),
        judge_api_key="none",
        judge_attempts=2,
        judge_deadline=3,
        home=tmp_path,
    )
    database = open_new_store(tmp_path)
    app = create_app(settings, engine=build_engine(settings, database), database=database)
    keys = {tenant: Keys(database).create(name=tenant, tenant=tenant)[1] for tenant in ("hostile", "quiet")}
    half = requests // 2
    cycle = [f"fault-{ANSWERED[n % len(ANSWERED)]}" for n in range(half * 3 // 4)]
    faults = [*cycle, *[f"fault-{BROKEN[n % len(BROKEN)]}" for n in range(half - len(cycle))]]
    seconds: list[float] = []

    async def send(tenant: str, number: int, fault: str, turn: asyncio.Semaphore) -> str:
        asked = json.dumps(body(number) | {"tags": {}}).replace("Refund order", f"{fault} Refund order").encode()

        async with turn:
            begun = time.monotonic()
            answer = await exchange(app, "POST", "/v1/score", asked, bearer(keys[tenant]))
        if tenant == "quiet":
            seconds.append(time.monotonic() - begun)
        outcome = judged(answer.json) if answer.status == 200 else {"kind": str(answer.status)}
        return outcome.get("cause", outcome["kind"])

    async def play() -> tuple[Counter[str], Counter[str]]:
        turns = {tenant: asyncio.Semaphore(AT_ONCE) for tenant in keys}
        async with app.router.lifespan_context(app):
            await send("quiet", -1, "", turns["quiet"])  # loads the library
            seconds.clear()
            hostile = [asyncio.create_task(send("hostile", n, one, turns["hostile"])) for n, one in enumerate(faults)]
            during = await asyncio.gather(*[send("quiet", n, "", turns["quiet"]) for n in range(half // 2)])
            suffered = await asyncio.gather(*hostile)
            after = await asyncio.gather(*[send("quiet", n, "", turns["quiet"]) for n in range(half // 2, half)])
        return Counter(suffered), Counter([*during, *after])

    suffered, told = asyncio.run(play())
    cuts = quantiles(seconds, n=20)
    print(f"hostile {dict(suffered)}; quiet {dict(told)}, median {cuts[9]:.2f} s, p95 {cuts[18]:.2f} s")  # noqa: T201
    assert told == {"scored": half}
    assert suffered["scored"] == 0

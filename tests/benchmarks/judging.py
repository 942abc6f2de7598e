"""(f) and (g): judged requests a second, against bare litellm calls and against the same requests with judges off.

The provider is our own, in a process of its own; it answers at once.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from service.api.app import create_app
from service.asking.budget.reservations import Spending
from service.asking.cache.disk import DiskCache
from service.asking.cache.guard import Cache
from service.asking.calls import ModelCaller
from service.asking.judging import Judges, Judging
from service.asking.model import LiteLLM, disconnect
from service.engine import Engine
from service.reading.request import ScoreRequest, read_request
from service.registry import Registry
from tests.benchmarks.http import load

REQUESTS = 600
AT_ONCE = 50
PORT = 8931
BASE = f"http://127.0.0.1:{PORT}/v1"

RUBRIC = {
    "id": "judged",
    "criteria": [{"id": "schema", "stage": "arguments", "check": {"kind": "schema"}},
     {"id": "argument_plausibility", "stage": "arguments",
     "check": {"kind": "judge", "judge": "argument_plausibility"}}],
}  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}]


def measure() -> None:
    """Prints both ratios."""
    provider = subprocess.Popen([sys.executable, "-m", "tests.faults.provider", str(PORT)])
    try:
        asyncio.run(_measured())
        _measure_cached()
    finally:
        provider.kill()
        provider.wait()


async def _measured() -> None:
    registry = Registry()
    model = LiteLLM(api_base=BASE, api_key="none", reply="auto")
    caller = ModelCaller(model, pricing=model.worst_usd)
    live = Engine(registry, judging=Judging(caller, Cache(), Judges("openai/good", api_base=BASE)))
    await _ready(live)
    import litellm  # after our own import of it, which keeps it off the network

    asked = turns(live)
    prompts, requests = [_prompt(live, n) for n in range(REQUESTS)], [request(n) for n in range(REQUESTS)]
    bare, alone, judged = await _rates(
        lambda _: litellm.acompletion(**asked, max_retries=0),
        lambda n: caller.complete(prompts[n], Spending()),
        lambda n: live.finish(requests[n], live.plan(requests[n])),  # as the HTTP route does
    )
    print(f"(f) judged requests, one question each, {AT_ONCE} at once, a provider that answers at once")
    print(f"    bare litellm calls                                                {bare:8.0f} calls/s")
    print(f"    our calls: slot, deadline, bill, retry                            {alone:8.0f} calls/s")
    print(f"    judged requests                                                   {judged:8.0f} requests/s")
    print(f"    ratio                                                             {judged / bare:8.2f}")
    await disconnect()


def _measure_cached() -> None:
    with tempfile.TemporaryDirectory() as folder:

        def serve() -> Any:
            model = LiteLLM(api_base=BASE, api_key="none", reply="auto")
            cache = DiskCache(Path(folder), ttl=3_600.0, max_bytes=2**30)
            judging = Judging(ModelCaller(model), cache, Judges("openai/good", api_base=BASE))
            return create_app(engine=Engine(Registry(), judging=judging))

        bodies = [[json.dumps(body(n, **more)).encode() for n in range(60)] for more in ({}, {"judges": "off"})]
        rounds = [[load(serve, "/v1/score", one).cpu_us for one in bodies] for _ in range(3)]
    cached, off = (min(spent[side] for spent in rounds) for side in (0, 1))
    print("(g) POST /v1/score, one question each, answered from the cache on disk, one core for the server")
    print(f"    judges off                                                        {off:8.0f} us of CPU")
    print(f"    from the cache                                                    {cached:8.0f} us of CPU")
    print(f"    off / cached                                                      {off / cached:8.2f}")


def request(number: int) -> ScoreRequest:
    """A request that was read."""
    return read_request(body(number))


def body(number: int, **more: Any) -> Any:
    """A request with one question, another one for each number."""
    call = {"id": "c", "type": "function", "function": {"name": "refund", "arguments": json.dumps({"order": number})}}
    messages = [{"role": "user", "content": f"Refund order {number}."}, {"role": "assistant", "tool_calls": [call]}]
    return {"rubric": RUBRIC, "trace": {"format": "openai", "messages": messages, "tools": TOOLS}, **more}


def _prompt(engine: Engine, number: int) -> Any:
    from service.core.judging.questions import build_question

    plan = engine.plan(request(number))
    return build_question(plan.asks[0], plan.trace).prompt("openai/good", "0" * 32, "0" * 8)


def turns(engine: Engine) -> dict[str, Any]:
    """What litellm is called with for one question."""
    prompt = _prompt(engine, 0)
    schema = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": prompt.schema}}
    messages = [{"role": turn.role, "content": turn.text} for turn in prompt.turns]
    return {
        "model": "openai/good", "api_base": BASE, "api_key": "none", "messages": messages, "response_format": schema,
        "max_tokens": prompt.max_tokens, "temperature": 0.0,
    }  # fmt: skip


async def _ready(engine: Engine) -> None:
    for _ in range(50):
        report = await engine.answer_async(request(-1))
        if report.provenance.replies:
            return
        await asyncio.sleep(0.2)
    raise RuntimeError("the provider does not answer")


async def _rates(*works: Callable[[int], Awaitable[object]]) -> list[float]:
    """Calls a second of each, the median of rounds in which each has its turn: litellm grows slower as it goes."""
    seconds: list[list[float]] = [[] for _ in works]
    for _ in range(3):
        for work, taken in zip(works, seconds, strict=True):
            start = time.perf_counter()
            await _many(work, REQUESTS)
            taken.append(time.perf_counter() - start)
    return [REQUESTS / sorted(taken)[1] for taken in seconds]


async def _many(work: Callable[[int], Awaitable[object]], number: int) -> None:
    numbers = iter(range(number))

    async def one() -> None:
        for n in numbers:
            await work(n)

    await asyncio.gather(*[one() for _ in range(AT_ONCE)])


if __name__ == "__main__":
    measure()

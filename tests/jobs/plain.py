"""A worker whose model is asked by a few lines of HTTP: it starts in a quarter of the time that litellm takes to load.

SILENT has the seconds without a beat after which it takes another one for dead.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import Any

import httpx

from service.asking.calls import ModelCaller
from service.asking.faults import CallError
from service.asking.judging import Judges, Judging
from service.cli.commands.worker import work
from service.core.judging.prompts import Completion, Prompt, Usage
from service.engine import Engine
from service.jobs import worker
from service.logs.lines import configure
from service.registry import Registry
from service.settings import Settings
from service.store.jobs.workers import SILENT_S, WorkerWatch
from service.wiring import build_cache, prepare_database


class Plain:
    """OpenAI's chat completions, as far as the tests' provider goes."""

    def __init__(self, base: str) -> None:
        self._client = httpx.AsyncClient(base_url=base, timeout=60.0, limits=httpx.Limits(max_connections=200))

    async def complete(self, prompt: Prompt) -> Completion:
        form = {"type": "json_schema", "json_schema": {"name": "reply", "schema": prompt.schema}}
        messages = [{"role": turn.role, "content": turn.text} for turn in prompt.turns]
        body = {"model": prompt.model.partition("/")[2], "messages": messages, "response_format": form}
        try:
            answer = await self._client.post("/chat/completions", json=body)
        except httpx.HTTPError as error:
            raise CallError("provider_error", repr(error), usage=Usage(), retryable=True) from None
        if answer.status_code != 200:
            raise CallError("provider_error", answer.text, status=answer.status_code, retryable=True)
        choice = answer.json()["choices"][0]
        return Completion(choice["message"]["content"], body["model"], Usage(1, 1, 0.0))


def run_worker(*, model: type[Plain] = Plain, kind: type[Engine] = Engine, **more: Any) -> None:
    """Work until a signal comes; `more`: what `work` takes."""
    configure("INFO")
    worker.WorkerWatch = partial(WorkerWatch, silent=float(os.environ.get("SILENT", SILENT_S)))  # type: ignore[misc]
    settings = Settings.from_env(os.environ)
    caller = ModelCaller(model(settings.judge_api_base))
    judges = Judges(settings.judge_model, api_base=settings.judge_api_base)
    built = kind(Registry(), judging=Judging(caller, build_cache(settings), judges))
    asyncio.run(work(settings, prepare_database(settings), **{"engine": built} | more))


if __name__ == "__main__":
    run_worker()

"""A worker that some items take down: those with the tag `poison`, when code looks at them (code) or when a judge is asked
about them (judge). It takes another worker for dead that has not beaten between two looks: no other lives beside it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial

from service.asking.calls import ModelCaller
from service.asking.judging import Judges, Judging
from service.cli.working import work
from service.core.judging.prompts import Completion, Prompt
from service.core.plan import Plan
from service.engine import Engine
from service.jobs import worker
from service.logs.lines import configure
from service.reading.request import ScoreRequest
from service.registry import Registry
from service.settings import Settings
from service.store.jobs.workers import WorkerWatch
from service.wiring import build_cache, prepare_database
from tests.jobs.plain import Plain

DEADLY = "Refund order 66."
"""What a judge is shown of such an item."""


def die() -> None:
    """As by the kernel where there is no memory left."""
    os.kill(os.getpid(), signal.SIGKILL)


class Poisoned(Engine):
    """Dies of the plan of an item."""

    def plan(self, request: ScoreRequest) -> Plan:
        """The plan of any other."""
        if request.tags.get("poison") == "code":
            die()
        return super().plan(request)


class Deadly(Plain):
    """Dies of a question."""

    async def complete(self, prompt: Prompt) -> Completion:
        """The reply to any other."""
        if any(DEADLY in turn.text for turn in prompt.turns):
            await asyncio.sleep(0.05)  # others are under way too
            die()
        return await super().complete(prompt)


def build_poisoned() -> Engine:
    """The engine that dies."""
    read = Settings.from_env(os.environ)
    caller = ModelCaller(Deadly(read.judge_api_base))
    judging = Judging(caller, build_cache(read), Judges(read.judge_model, api_base=read.judge_api_base))
    return Poisoned(Registry(), judging=judging)


if __name__ == "__main__":
    worker.WorkerWatch = partial(WorkerWatch, silent=0.5)  # type: ignore[misc] (a dead one is told at the second look, not the tenth)
    configure("INFO")
    read = Settings.from_env(os.environ)
    asyncio.run(work(read, prepare_database(read), engine=build_poisoned()))

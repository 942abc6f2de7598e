"""A worker with processes beside it that score, which some items take down, as those of `poisoned`."""

from __future__ import annotations

import asyncio
import os

from service.cli.serving.worker import work
from service.jobs.items import widen_limits
from service.jobs.scorers import ScorerPool
from service.logs.lines import configure
from service.settings import Settings
from service.wiring import build_limits, prepare_database
from tests.jobs.poisoned import build_poisoned

if __name__ == "__main__":
    configure("INFO")
    read = Settings.from_env(os.environ)
    pool = ScorerPool(2, widen_limits(build_limits(read)), build=build_poisoned)
    asyncio.run(work(read, prepare_database(read), engine=build_poisoned(), pool=pool))

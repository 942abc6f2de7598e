"""A worker that looks often at the batches of providers."""

from __future__ import annotations

import asyncio
import os

from service.cli.working import work
from service.jobs.provider_judging import Polling
from service.logs.lines import configure
from service.settings import Settings
from service.wiring import prepare_database

if __name__ == "__main__":
    configure("INFO")
    read = Settings.from_env(os.environ)
    asyncio.run(work(read, prepare_database(read), polling=Polling(0.05, 0.2, 0.2)))

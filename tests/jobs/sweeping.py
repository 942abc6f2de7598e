"""A worker that looks for what has expired five times a second."""

from __future__ import annotations

import runpy

from service.jobs import worker

if __name__ == "__main__":
    worker.SWEEP_INTERVAL_S = 0.2
    runpy.run_module("tests.jobs.plain", run_name="__main__")

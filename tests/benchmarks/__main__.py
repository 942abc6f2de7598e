"""Runs every benchmark, or those named: `python -m tests.benchmarks [table|scoring|http|judging|batches|grounding]...`."""

from __future__ import annotations

import sys

from tests.benchmarks import (
    batches,
    drift,
    http,
    judging,
    scoring,
    table,
    tenants,
)
from tests.benchmarks.grounding import speed

BENCHMARKS = {
    "table": table.measure,
    "scoring": scoring.measure,
    "http": http.measure,
    "grounding": speed.measure,
    "judging": judging.measure,
    "drift": drift.measure,
    "batches": batches.measure,
    "tenants": tenants.measure,
    "tenants_batches": tenants.measure_batches,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()

"""Runs every benchmark, or those named: `python -m tests.benchmarks [table|http|judging|batches|tenants|drift]...`."""

from __future__ import annotations

import sys

from tests.benchmarks import (
    batches,
    drift,
    http,
    judging,
    table,
    tenants,
)

BENCHMARKS = {
    "table": table.measure,
    "http": http.measure,
    "judging": judging.measure,
    "drift": drift.measure,
    "batches": batches.measure,
    "tenants": tenants.measure,
    "tenants_batches": tenants.measure_batches,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()

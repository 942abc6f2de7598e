"""Runs every benchmark, or those named: `python -m tests.benchmarks [table|scoring|http|importing|batches|growth]...`."""

from __future__ import annotations

import sys

from tests.benchmarks import (
    batches,
    drift,
    evidence,
    growth,
    http,
    importing,
    judging,
    matching,
    scoring,
    table,
    tenants,
)

BENCHMARKS = {
    "table": table.measure,
    "scoring": scoring.measure,
    "http": http.measure,
    "importing": importing.measure,
    "matching": matching.measure,
    "judging": judging.measure,
    "evidence": evidence.measure,
    "drift": drift.measure,
    "batches": batches.measure,
    "growth": growth.measure,
    "tenants": tenants.measure,
    "tenants_batches": tenants.measure_batches,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()

"""Runs every benchmark, or those named: `python -m tests.benchmarks [NAME]...`; an unknown name lists them."""

from __future__ import annotations

import sys

from tests.benchmarks import batches, drift, http, judging, memory, table, tenants

BENCHMARKS = {
    "table": table.measure,
    "http": http.measure,
    "judging": judging.measure,
    "drift": drift.measure,
    "batches": batches.measure,
    "memory": memory.measure,
    "tenants": tenants.measure,
    "tenants_batches": tenants.measure_batches,
}

if __name__ == "__main__":
    if unknown := set(sys.argv[1:]) - BENCHMARKS.keys():
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; expected some of {', '.join(BENCHMARKS)}")
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()

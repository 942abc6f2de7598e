"""Runs every benchmark: `python -m tests.benchmarks [scoring|http|importing]...`."""

from __future__ import annotations

import sys

from tests.benchmarks import http, importing, scoring

BENCHMARKS = {"scoring": scoring.measure, "http": http.measure, "importing": importing.measure}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        BENCHMARKS[name]()

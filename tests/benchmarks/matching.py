"""What matching many expected to many actual calls costs, against their number."""

from __future__ import annotations

import random
import time
from typing import Any

from service import score

TOOLS = 5


def measure() -> None:
    """Prints seconds a trace for growing numbers of calls, all contested: five tools, every argument different."""
    score(_request(4))
    _request_seconds(50)  # loads the solver
    print("(e) matching n expected to n actual calls of five tools, shuffled")
    previous = 0.0
    for n in (125, 250, 500, 1000, 2000):
        seconds = _request_seconds(n)
        growth = f"{seconds / previous:5.1f} times the one before" if previous else ""
        print(f"    n = {n:<5}                                                         {seconds:8.3f} s   {growth}")
        previous = seconds


def _request_seconds(n: int) -> float:
    request = _request(n)
    start = time.perf_counter()
    report = score(request)
    seconds = time.perf_counter() - start
    if report.score != 1.0:
        raise AssertionError(f"every call has its match, and yet the score is {report.score}")
    return seconds


def _request(n: int) -> dict[str, Any]:
    calls = [{"name": f"tool_{k % TOOLS}", "arguments": {"id": k, "note": f"call {k}"}} for k in range(n)]
    made = random.Random(n).sample(calls, n)
    return {
        "trace": {
            "format": "callgrade",
            "tools": [{"name": f"tool_{k}", "parameters": {"type": "object"}} for k in range(TOOLS)],
            "events": [{"user": "go"}, *({"call": call} for call in made)],
        },
        "expected": {"calls": [{"tool": call["name"], "args": call["arguments"]} for call in calls]},
    }

"""(i): what the checks without a model cost, and how that grows with the payload and the answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from service.core.evidence.narration.answers import narrate
from service.core.evidence.provenance.provenance import locate_arguments
from service.core.evidence.provenance.sources import SourceIndex
from service.core.trace import Trace
from service.intake import read_trace


def measure() -> None:
    """Prints milliseconds for a payload of 10 kB with an answer of 2 kB, and for parts and multiples of both."""
    print(
        "(i) evidence, one trace: every claim of the answer against the payload, every argument against all that was said"
    )
    for factor in (0.25, 0.5, 1, 2, 4):
        trace = _trace(factor)
        payload, answer = len(str(trace.steps[0].result)), len(trace.answer or "")
        narration = _best(narrate, trace)
        provenance = _best(_located, trace)
        print(
            f"    payload {payload / 1e3:5.1f} kB, answer {answer / 1e3:4.1f} kB                "
            f"narration {narration * 1e3:7.2f} ms   provenance {provenance * 1e3:7.2f} ms"
        )


def _trace(factor: float) -> Trace:
    rows = [
        {"order_id": f"A{n:05}", "customer": f"Customer {n}", "amount_cents": 1_000 + 37 * n, "status": "settled",
         "placed_on": f"2026-03-{n % 28 + 1:02}", "items": n % 7 + 1}
        for n in range(int(85 * factor))
    ]  # fmt: skip
    said = " ".join(
        f"Order {row['order_id']} has an amount of ${row['amount_cents'] / 100:,.2f} with {row['items']} items."
        for row in rows[: int(32 * factor)]
    )
    calls: list[Any] = [{"call": {"name": "list_orders", "arguments": {}}, "result": {"orders": rows}}]
    calls += [{"call": {"name": "get_order", "arguments": {"order_id": row["order_id"]}}} for row in rows[:10]]
    return read_trace({"format": "callgrade", "events": [{"user": "List my orders."}, *calls, {"assistant": said}]})


def _located(trace: Trace) -> None:
    sources = SourceIndex(trace)
    for step in trace.steps:
        list(locate_arguments(step, None, sources))


def _best(work: Callable[[Trace], object], trace: Trace) -> float:
    times: list[float] = []
    for _ in range(7):
        start = time.perf_counter()
        work(trace)
        times.append(time.perf_counter() - start)
    return min(times)

"""What grounding costs: an answer of 10 kB with results of 100 kB and of 1 MB, beside `json.loads` of the same results."""

from __future__ import annotations

import json
import random
from typing import Any

from service.core.grounding.texts import ground_texts
from service.intake import read_trace
from tests.benchmarks.scoring import best

ANSWER_CHARS = 10_000
SIZES = (100_000, 300_000, 1_000_000)
WORDS = "the item that was ordered is due in our shop and will be sent to you with the next parcel".split(" ")  # noqa: SIM905


def measure() -> None:
    """Prints the time for each size of results, the same in their parsing times, and how it grows."""
    print(f"grounding an answer of {ANSWER_CHARS // 1000} kB")
    for share in (0.0, 0.3):
        smallest = 0.0
        for size in SIZES:
            records = _make_records(size)
            trace = read_trace(_make_trace(records, share))
            text = json.dumps(records)
            parsing = best(lambda text=text: json.loads(text), rounds=5)
            spent = best(lambda trace=trace: ground_texts(trace), rounds=3)
            smallest = smallest or spent
            print(
                f"    {len(text) / 1000:7.0f} kB of results, {share:3.0%} of the values wrong {spent * 1e3:9.1f} ms"
                f"  {spent / parsing:7.1f} x json.loads  {spent / smallest:5.1f} x the smallest"
            )


def _make_records(size: int) -> list[dict[str, Any]]:
    draw = random.Random(7)
    records: list[dict[str, Any]] = []
    length = 2
    while length < size:
        day = f"2025-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}"
        note = " ".join(draw.choices(WORDS, k=8))
        ref = f"{draw.choice('ABC')}K-{draw.randrange(10**6):06}"
        record = {
            "id": len(records),
            "ref": ref,
            "price_cents": draw.randrange(10**6),
            "due": day,
            "note": note,
            "open": True,
        }
        records.append(record)
        length += len(json.dumps(record)) + 2
    return records


def _make_trace(records: list[dict[str, Any]], share: float) -> dict[str, Any]:
    """An answer that tells of records; a share of its amounts and references is made up."""
    draw = random.Random(11)
    lines: list[str] = []
    while sum(map(len, lines)) < ANSWER_CHARS:
        record = draw.choice(records)
        cents = draw.randrange(10**6) if draw.random() < share else record["price_cents"]
        ref = f"{record['ref'][:-2]}{draw.randrange(100):02}" if draw.random() < share else record["ref"]
        lines.append(
            f"- {ref} costs ${cents / 100:,.2f} and {' '.join(draw.choices(WORDS, k=6))}; due {record['due']}.\n"
        )
    events = [{"user": "What is open?"}, {"call": {"name": "list_items", "arguments": {}}, "result": records}]
    return {"format": "callgrade", "events": [*events, {"assistant": "".join(lines)}]}

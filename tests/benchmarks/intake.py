"""Count what intake makes of logs that people wrote without the code: `python -m tests.benchmarks.intake [--wrong]`.

`tests/data/intake` has the sets. Of rows that are held back, only counts are printed.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from service.core.trace import Trace
from service.errors import InputError
from service.intake.reading import TraceInput, read_trace

DATA = Path(__file__).parents[1] / "data" / "intake"
INPUT: TypeAdapter[Any] = TypeAdapter(TraceInput)


def read_rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a set."""
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()]


def read(row: dict[str, Any]) -> Trace | None:
    """Read a row's trace; None if it is refused."""
    try:
        return read_trace(INPUT.validate_python(row["trace"]))
    except (ValidationError, InputError, ValueError):
        return None


def list_outcomes() -> Iterator[tuple[str, dict[str, Any], bool, Trace | None]]:
    """Iterate over the rows of all sets: what they count in, the row, whether it is right, and its trace."""
    for row in read_rows("lookalikes"):
        trace = read(row)
        yield "look-alikes left alone", row, trace is not None and not trace.unread, trace
    for row in read_rows("text_calls"):
        trace = read(row)
        yield (
            "calls in texts found",
            row,
            trace is None or bool(trace.steps) or any(part.kind == "call" for part in trace.unread),
            trace,
        )
    for row in read_rows("forms"):
        trace = read(row)
        if row["harmless"]:
            yield "harmless records left alone", row, trace is not None and not trace.unread, trace
        else:
            yield (
                f"lost {row['lost']}s named",
                row,
                trace is None or bool(trace.unread) or any(not one.call.captured for one in trace.steps),
                trace,
            )


def main() -> None:
    """Print the counts."""
    counts: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for name, row, right, trace in list_outcomes():
        counts[name, row["half"]].append(right)
        if "--wrong" in sys.argv and not right and row["half"] == "seen":
            print(
                name,
                row["id"],
                "|",
                row.get("why"),
                "|",
                [(part.kind, part.path, part.reason) for part in trace.unread] if trace else "refused",
            )
    for (name, half), rows in sorted(counts.items()):
        print(f"{name:32} {half:10} {sum(rows):4} of {len(rows)}")


if __name__ == "__main__":
    main()

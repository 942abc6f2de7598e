"""Arguments of right runs of tau-bench, changed one by one: how many are noticed without expectation, and how many unchanged."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from service.core.evidence.provenance.provenance import locate_arguments
from service.core.evidence.provenance.sources import SourceIndex
from service.core.json.leaves import list_leaves
from service.core.trace import Trace
from service.intake import read_trace


def measure(data: Path) -> None:
    """Prints what is noticed of each kind, and the share of unchanged runs in which anything is."""
    for name, runs in (("airline", _read_airline(data)), ("retail", _read_retail(data))):
        tried: Counter[str] = Counter()
        noticed: Counter[str] = Counter()
        flagged = 0
        for trace in runs:
            sources, tools = SourceIndex(trace), {tool.name: tool for tool in trace.tools or ()}
            flagged += any(
                one.code for step in trace.steps for one in locate_arguments(step, tools.get(step.call.name), sources)
            )
            for step in trace.steps:
                for pointer, kind, other in _iter_changes(dict(step.call.arguments or {})):
                    wrong = _put(json.loads(json.dumps(step.call.arguments)), pointer, other)
                    changed = replace(step, call=replace(step.call, arguments=wrong))
                    found = locate_arguments(changed, tools.get(step.call.name), sources)
                    tried[kind] += 1
                    noticed[kind] += any(one.code and one.path.endswith(pointer) for one in found)
        shown = ", ".join(f"{kind} {noticed[kind]} of {tried[kind]}" for kind in sorted(tried))
        sys.stdout.write(f"{name}: {shown}; unchanged runs flagged: {flagged} of {len(runs)}\n")


def _read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [row for row in map(json.loads, lines) if row["reward"] == 1]


def _read_airline(data: Path) -> list[Trace]:
    tools = json.loads((data / "tau_airline" / "tools.json").read_text("utf-8"))
    return [
        read_trace({**row, "format": "tau", "tools": tools}) for row in _read(data / "tau_airline" / "runs.jsonl.gz")
    ]


def _read_retail(data: Path) -> list[Trace]:
    rows = _read(data / "tau_retail" / "runs_dev.jsonl.gz")
    return [read_trace({"format": "tau", "task_id": row["task_id"], "messages": row["messages"]}) for row in rows]


def _iter_changes(arguments: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for leaf in list_leaves(arguments):
        value, key = leaf.value, leaf.key
        if isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
            yield leaf.pointer, "date", (date.fromisoformat(value) + timedelta(days=3)).isoformat()
        elif (
            isinstance(value, str)
            and (key.endswith("_id") or key in ("flight_number", "email"))
            and re.search(r"\d", value)
        ):
            yield leaf.pointer, "identifier", re.sub(r"\d", lambda m: str((int(m.group()) + 5) % 10), value, count=1)
        elif isinstance(value, str) and re.fullmatch(r"[A-Z]{3}", value):
            yield leaf.pointer, "code", "ZRH"
        elif isinstance(value, str) and "name" in key:
            yield leaf.pointer, "name", "Wolfgang"
        elif isinstance(value, str) and key in ("cabin", "flight_type", "insurance"):
            yield (
                leaf.pointer,
                "category",
                {"economy": "business", "one_way": "round_trip", "no": "yes"}.get(value, "economy"),
            )
        elif isinstance(value, int | float) and not isinstance(value, bool) and "amount" in key:
            yield leaf.pointer, "amount", value + 37


def _put(arguments: Any, pointer: str, value: Any) -> Any:
    *path, last = pointer.strip("/").split("/")
    here = arguments
    for key in path:
        here = here[int(key)] if isinstance(here, list) else here[key]
    here[int(last) if isinstance(here, list) else last] = value
    return arguments


if __name__ == "__main__":
    measure(Path(sys.argv[1]))

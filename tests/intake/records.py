"""The records of `tests/data/traces`: inputs and the traces expected from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from service.core.trace import Trace
from service.intake.reading import FORMATS, TraceInput, read_trace

DATA = Path(__file__).parents[1] / "data" / "traces"
FILES = {name: file for name in FORMATS if (file := DATA / f"{name}.json").exists()}
"""By format. `tests/core/test_kinds.py` names a format that has none."""

RECORDS: dict[str, list[dict[str, Any]]] = {name: json.loads(file.read_text("utf-8")) for name, file in FILES.items()}
CASES = [(name, case) for name, cases in RECORDS.items() for case in cases]
INPUT: TypeAdapter[Any] = TypeAdapter(TraceInput)


def load(record: object) -> Trace:
    """Read a record as a request would: validated, in the format that it names or is guessed to have."""
    return read_trace(INPUT.validate_python(record))

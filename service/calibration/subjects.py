"""The trace that a label is about, whole or up to a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from pydantic import JsonValue

from service.core.trace import Trace
from service.request import read_request, read_request_trace


def read_subject_trace(request: JsonValue, document: Mapping[str, JsonValue] | None) -> Trace | None:
    """Read the trace that a label is about; None where there is none. InputError for one that cannot be read."""
    body = request or (None if document is None or "trace" not in document else {"trace": document["trace"]})
    return None if body is None else read_request_trace(read_request(cast("JsonValue", body)))


def cut_after(trace: Trace, step: int) -> Trace:
    """Cut the trace after a step and its result."""
    steps = trace.steps[: step + 1]
    messages, turn = trace.messages[: steps[-1].message + 1], steps[-1].turn
    return replace(trace, steps=steps, messages=messages, turns=turn, answer=None, output=None, state=None)

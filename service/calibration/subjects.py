"""The trace of what is labelled, whole or up to a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from pydantic import JsonValue

from service.core.trace import Trace
from service.request import read_request, read_request_trace


def read_subject_trace(request: JsonValue, document: Mapping[str, JsonValue] | None) -> Trace | None:
    """The trace of what is labelled; None where there is none. InputError for one that cannot be read."""
    sent = request or (None if document is None or "trace" not in document else {"trace": document["trace"]})
    return None if sent is None else read_request_trace(read_request(cast("JsonValue", sent)))


def cut_behind(trace: Trace, step: int) -> Trace:
    """The trace up to a step and what that returned."""
    steps = trace.steps[: step + 1]
    messages, turn = trace.messages[: steps[-1].message + 1], steps[-1].turn
    return replace(trace, steps=steps, messages=messages, turns=turn, answer=None, output=None, state=None)

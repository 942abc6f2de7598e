"""Read what a step or a trace took, as its spans state it: time, tokens, US dollars."""

from __future__ import annotations

import math
from collections.abc import Sequence

from service.core.trace import ResourceUsage
from service.intake.spans.otlp import Span

_INPUT_TOKENS = ("gen_ai.usage.input_tokens", "llm.token_count.prompt", "gen_ai.usage.prompt_tokens")
_OUTPUT_TOKENS = ("gen_ai.usage.output_tokens", "llm.token_count.completion", "gen_ai.usage.completion_tokens")
_COSTS = ("operation.cost", "llm.cost.total", "gen_ai.usage.cost", "gen_ai.usage.total_cost")


def read_usage(run: Span | None, reply: Span | None) -> ResourceUsage | None:
    """Return what a step took, from the spans of its tool run and the model's reply; None if neither says."""
    usage = ResourceUsage(
        (run.end - run.start) / 1e9 if run is not None and run.timed else None,
        None if reply is None else _read_count(reply, _INPUT_TOKENS),
        None if reply is None else _read_count(reply, _OUTPUT_TOKENS),
        None if reply is None else _read_number(reply, _COSTS),
    )
    return None if usage == ResourceUsage() else usage


def sum_usage(spans: Sequence[Span], models: Sequence[Span]) -> ResourceUsage | None:
    """Return what a trace took: the time from first start to last end, and what its model spans state, each once."""
    timed = [span for span in spans if span.timed]
    duration = (max(span.end for span in timed) - min(span.start for span in timed)) / 1e9 if timed else None
    usage = ResourceUsage(
        duration,
        _sum_counts(models, _INPUT_TOKENS),
        _sum_counts(models, _OUTPUT_TOKENS),
        _sum_numbers(models, _COSTS),
    )
    return None if usage == ResourceUsage() else usage


def _sum_counts(spans: Sequence[Span], names: Sequence[str]) -> int | None:
    total = _sum_numbers(spans, names)
    return None if total is None else int(total)


def _sum_numbers(spans: Sequence[Span], names: Sequence[str]) -> float | None:
    """Return the sum if every span states the number; otherwise None: a partial sum would look complete."""
    found = [_read_number(span, names) for span in spans]
    known = [number for number in found if number is not None]
    return math.fsum(known) if known and len(known) == len(found) else None


def _read_count(span: Span, names: Sequence[str]) -> int | None:
    number = _read_number(span, names)
    return None if number is None else int(number)


def _read_number(span: Span, names: Sequence[str]) -> float | None:
    for name in names:
        value = span.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf:
            return value
    return None

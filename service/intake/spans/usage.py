"""Read what a step or a trace took, as its spans state it: time, tokens, US dollars."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from service.core.trace import ResourceUsage
from service.intake.spans.otlp import Span

_INPUT_TOKENS = ("gen_ai.usage.input_tokens", "llm.token_count.prompt", "gen_ai.usage.prompt_tokens")
_OUTPUT_TOKENS = ("gen_ai.usage.output_tokens", "llm.token_count.completion", "gen_ai.usage.completion_tokens")
_COSTS = ("operation.cost", "llm.cost.total", "gen_ai.usage.cost", "gen_ai.usage.total_cost")


def read_usage(run: Span | None, reply: Span | None) -> ResourceUsage | None:
    """Return what a step took, from the spans of its tool run and the model's reply; None if neither says."""
    duration = (run.end - run.start) / 1e9 if run is not None and run.timed else None
    return _sum(duration, [] if reply is None else [reply])


def sum_usage(spans: Sequence[Span], models: Sequence[Span]) -> ResourceUsage | None:
    """Return what a trace took: the time from first start to last end, and what its model spans state, each once."""
    timed = [span for span in spans if span.timed]
    return _sum((max(span.end for span in timed) - min(span.start for span in timed)) / 1e9 if timed else None, models)


def _sum(duration: float | None, models: Sequence[Span]) -> ResourceUsage | None:
    """Return the duration, and each number if every span states it: a partial sum would look complete."""
    sums: list[float | None] = []
    for names in (_INPUT_TOKENS, _OUTPUT_TOKENS, _COSTS):
        found = [next(_list_numbers(span, names), None) for span in models]
        known = [number for number in found if number is not None]
        sums.append(math.fsum(known) if known and len(known) == len(found) else None)
    read, written, cost = sums
    usage = ResourceUsage(
        duration, None if read is None else int(read), None if written is None else int(written), cost
    )
    return None if usage == ResourceUsage() else usage


def _list_numbers(span: Span, names: Sequence[str]) -> Iterator[float]:
    for value in map(span.get, names):
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf:
            yield value

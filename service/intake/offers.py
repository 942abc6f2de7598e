"""Tools that come on offer during a run, where each request of a log lists its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from service.core.trace import Offer, ToolDef, Trace


class Request(NamedTuple):
    """What a model was given in one request of a conversation."""

    calls: int
    """How many calls had been made."""
    turn: int
    tools: Sequence[ToolDef] | None
    """What the request lists; None: it says nothing of tools."""


def add_offers(trace: Trace, requests: Sequence[Request], before: Iterable[str] = ()) -> Trace:
    """The trace with the tools of all requests of its conversation, in their order, and when those came that came later.

    A request that says nothing of tools may have had any: what later ones list was there. So were the tools called `before` the
    first request, of whose catalogue nothing is known.
    """
    if trace.tools is None:
        return trace
    known = {tool.name: tool for tool in trace.tools}
    offers = dict(trace.offers)
    seen: set[str] = set(before)
    for n, request in enumerate(requests):
        if request.tools is None:
            return replace(trace, tools=tuple(known.values()), offers=offers)
        for tool in request.tools:
            known.setdefault(tool.name, tool)
            if n and tool.name not in seen and (request.calls or request.turn > 1):
                offers.setdefault(tool.name, Offer(request.calls, request.turn))
        seen |= {tool.name for tool in request.tools}
    return replace(trace, tools=tuple(known.values()), offers=offers)

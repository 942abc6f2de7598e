"""Tools that come on offer during a run, for logs in which each request lists its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from service.core.trace import Offer, ToolDef, Trace


class Request(NamedTuple):
    """What a model was sent in one request of a conversation."""

    calls: int
    """Number of calls made before the request."""
    turn: int
    tools: Sequence[ToolDef] | None
    """The tools that the request lists; None if it does not mention tools."""


def add_offers(trace: Trace, requests: Sequence[Request], before: Iterable[str] = ()) -> Trace:
    """Return the trace with the tools of all requests, in order, and when the later ones came on offer.

    A request that does not mention tools may have offered any, so tools that later requests list were there. So were
    tools called `before` the first request, whose catalogue is unknown.
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

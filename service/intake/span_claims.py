"""Which run of a tool is which call of a message."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Sequence

from service.core.trace import ToolCall
from service.intake.span_runs import Run


def claim_runs(calls: Sequence[ToolCall], runs: Sequence[Run]) -> tuple[dict[int, Run], list[Run]]:
    """The run of each call that a message made, by the call's place, and the runs that stand for themselves.

    Two ids that differ are two calls; an id on one side alone settles nothing.
    """
    claims: dict[int, Run] = {}
    left = list(runs)
    for key_of, with_id in _LIKENESS:
        waiting: defaultdict[str | None, deque[int]] = defaultdict(deque)
        for index, call in enumerate(calls):
            if index not in claims and not (with_id and call.id and key_of is not _call_id):
                waiting[key_of(call)].append(index)
        unclaimed: list[Run] = []
        for run in left:
            key = key_of(run.call) if bool(run.call.id) == with_id else None
            if key is not None and waiting[key]:
                claims[waiting[key].popleft()] = run
            else:
                unclaimed.append(run)
        left = unclaimed
    return claims, left


def _call_id(call: ToolCall) -> str | None:
    return call.id


def _name_with_arguments(call: ToolCall) -> str | None:
    return None if call.arguments is None else json.dumps([call.name, call.arguments], sort_keys=True)


def _name(call: ToolCall) -> str | None:
    return call.name


_LIKENESS = (
    (_call_id, True),
    (_name_with_arguments, False),
    (_name_with_arguments, True),
    (_name, False),
    (_name, True),
)
"""What tells that a run is a call, best first, and whether it is asked of the runs with an id or of those without."""

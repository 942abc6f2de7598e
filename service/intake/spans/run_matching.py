"""Match tool runs with the calls that messages made."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from itertools import islice

from pydantic import JsonValue

from service.core.trace import ToolCall
from service.intake.spans.runs import Run

_MAX_TRIES = 64
"""Calls of one key compared with a run. Only hostile exports have more that differ from it."""


def match_runs(calls: Sequence[ToolCall], runs: Sequence[Run]) -> tuple[dict[int, Run], list[Run]]:
    """Match each call with its run; return runs by call index, and the runs that match no call.

    Calls with different ids, names or arguments are different calls; an id on one side only decides nothing. A tool
    may receive more arguments than the model wrote, and arguments of other types.
    """
    matches: dict[int, Run] = {}
    remaining = list(runs)
    # ADK gives a call without an id its name and a number, in messages alone.
    own = {at for at, call in enumerate(calls) if call.id and call.id.rstrip("0123456789") != f"{call.name}_"}
    for key_of, with_id in _MATCH_RULES:
        waiting: defaultdict[str | None, deque[int]] = defaultdict(deque)
        for index, call in enumerate(calls):
            if index not in matches and not (with_id and index in own and key_of not in _BY_ID):
                waiting[key_of(call)].append(index)
        unclaimed: list[Run] = []
        for run in remaining:
            key = key_of(run.call) if bool(run.call.id) == with_id else None
            index = None if key is None else _take(waiting[key], run.call, calls)
            if index is None:
                unclaimed.append(run)
            else:
                matches[index] = run
        remaining = unclaimed
    return matches, remaining


def _take(waiting: deque[int], run: ToolCall, calls: Sequence[ToolCall]) -> int | None:
    """Take the first waiting call that the run does not contradict; return its index."""
    for offset, index in enumerate(islice(waiting, _MAX_TRIES)):
        if not _contradicts(calls[index], run):
            del waiting[offset]
            return index
    return None


def _contradicts(call: ToolCall, run: ToolCall) -> bool:
    """Whether call and run have different plain values for an argument.

    >>> made = ToolCall("1", "f", {"n": "5", "q": "a"})
    >>> [_contradicts(made, ToolCall("1", "f", raw)) for raw in ({"n": 5, "limit": 9}, {"n": 6}, None)]
    [False, True, False]
    """
    ours, theirs = call.arguments or {}, run.arguments or {}
    both = [(_spell(ours[name]), _spell(theirs[name])) for name in ours.keys() & theirs.keys()]
    return any(one != other for one, other in both if one is not None and other is not None)


def _spell(value: JsonValue) -> str | None:
    if isinstance(value, (dict, list)) or value is None:
        return None
    return str(int(value) if isinstance(value, float) and value.is_integer() else value).strip().lower()


def _key_by_id_and_name(call: ToolCall) -> str | None:
    return json.dumps([call.id, call.name]) if call.id else None


def _key_by_id_and_arguments(call: ToolCall) -> str | None:
    return json.dumps([call.id, call.name, call.arguments], sort_keys=True) if call.id else None


def _key_by_name_and_arguments(call: ToolCall) -> str | None:
    return None if call.arguments is None else json.dumps([call.name, call.arguments], sort_keys=True)


def _key_by_name(call: ToolCall) -> str | None:
    return call.name


_BY_ID: tuple[Callable[[ToolCall], str | None], ...] = (_key_by_id_and_arguments, _key_by_id_and_name)
_MATCH_RULES = (
    (_key_by_id_and_arguments, True),
    (_key_by_id_and_name, True),
    (_key_by_name_and_arguments, False),
    (_key_by_name_and_arguments, True),
    (_key_by_name, False),
    (_key_by_name, True),
)
"""What identifies a run as a call, best first, and whether that applies to runs with an id or to those without."""

"""Arguments that an expectation ignores: which they are, and how to leave them out of the comparison."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TypeVar

from service.core.critics.plain import Present
from service.core.expectations.expectation import AnyOrder, CallAlternatives, CallPattern, Expectation, Position, Scope
from service.core.expectations.merging import CALLS, change_model
from service.core.trace import Step, Trace

S = TypeVar("S", bound=Scope)

Relax = Callable[[CallPattern], CallPattern]

IGNORED = Present(kind="present", optional=True)


def is_ignored(expectation: Expectation | None, tool: str, argument: str) -> bool:
    """Whether to ignore an argument, by its name or by tool and name: `*_id`, `search.cursor`."""
    patterns = () if expectation is None else expectation.ignore_args
    return any(fnmatchcase(argument, one) or fnmatchcase(f"{tool}.{argument}", one) for one in patterns)


def leave_out_arguments(expectation: Expectation | None, trace: Trace) -> Expectation | None:
    """Let ignored arguments be anything or absent, and weigh 0, in every call that the expectation lists."""
    if expectation is None or not expectation.ignore_args:
        return expectation
    names = {(step.call.name, name) for step in trace.steps for name in step.call.arguments or ()}

    def relax(pattern: CallPattern) -> CallPattern:
        if pattern.args is None:
            return pattern
        here = {*pattern.args, *[name for tool, name in names if tool == pattern.tool]}
        gone = {name for name in here if is_ignored(expectation, pattern.tool, name)}
        if not gone:
            return pattern
        return change_model(
            pattern,
            {
                "args": {**pattern.args, **dict.fromkeys(gone, IGNORED)},
                "weights": {**pattern.weights, **dict.fromkeys(gone, 0.0)},
            },
        )

    turns = tuple(_relax_scope(one, relax) for one in expectation.turns)
    return _relax_scope(expectation, relax, turns=turns)


def _relax_scope(scope: S, relax: Relax, **more: object) -> S:
    said = {name: getattr(scope, name) for name in scope.model_fields_set}
    for name in CALLS:
        if isinstance(said.get(name), tuple):
            said[name] = tuple(_relax_position(one, relax) for one in said[name])
    said |= more
    return type(scope).model_construct(set(said), **said)


def _relax_position(position: Position, relax: Relax) -> Position:
    if isinstance(position, AnyOrder):
        return change_model(position, {"any_order": tuple(map(relax, position.any_order))})
    if isinstance(position, CallAlternatives):
        return change_model(position, {"any_of": tuple(map(relax, position.any_of))})
    return relax(position)


def list_ignored(expectation: Expectation | None, step: Step) -> frozenset[str]:
    """Return the names of a call's arguments that are ignored."""
    given = step.call.arguments or {}
    return frozenset(name for name in given if is_ignored(expectation, step.call.name, name))

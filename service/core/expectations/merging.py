"""Merge what a rubric expects of every trace with what is expected of one, and leave out ignored arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import TypeVar

from service.core.critics.plain import Present
from service.core.expectations.expectation import (
    AnyOrder,
    CallAlternatives,
    CallPattern,
    Expectation,
    Position,
    Scope,
    build_allowed_ban,
)
from service.core.expectations.templates import Template
from service.core.trace import Step, Trace

M = TypeVar("M", CallPattern, AnyOrder, CallAlternatives, Expectation)

CALLS = ("calls", "ordered", "unordered", "optional")
"""The fields that say which calls are right: taken together from one of the two expectations, never mixed."""
WHOLE_FIELDS = ("allow_extra", "answer", "state", "output", "gold")


def merge_expectations(own: Expectation | None, standing: Expectation | None) -> Expectation | None:
    """Merge a trace's own expectation with the standing one, which a rubric has for every trace. Pure.

    Bans (`allowed` is one), texts that must be said and ignored arguments add up, the trace's own first.
    Counts are merged tool by tool, turns by turn; the calls, the answer, the state, the output and the rest are each taken
    whole. The trace's own takes precedence.
    """
    if own is None or standing is None:
        return own or standing
    both_limit = own.allowed is not None and standing.allowed is not None
    others = (build_allowed_ban(standing.allowed),) if both_limit and standing.allowed is not None else ()
    changes: dict[str, object] = {
        "disallowed": (*own.disallowed, *standing.disallowed, *others),
        "allowed": standing.allowed if own.allowed is None else own.allowed,
        "counts": {**standing.counts, **own.counts},
        "ignore_args": (*own.ignore_args, *standing.ignore_args),
        "said": _join_said(own.said, standing.said),
        "turns": (*own.turns, *[one for one in standing.turns if one.turn not in {scope.turn for scope in own.turns}]),
    }
    changes |= {name: getattr(standing, name) for name in _iter_standing_fields(own, standing)}
    return change_model(own, changes)


def _iter_standing_fields(own: Expectation, standing: Expectation) -> Iterator[str]:
    """Yield the fields that the standing expectation gives and the trace's own does not."""
    said = own.model_fields_set
    if not any(getattr(own, name) for name in CALLS) and own.calls is None:
        yield from (name for name in CALLS if name in standing.model_fields_set)
    for name in WHOLE_FIELDS:
        has_own = name in said and _says(name, getattr(own, name))
        if name in standing.model_fields_set and not has_own:
            yield name


def _says(name: str, value: object) -> bool:
    """Whether a given field says anything: null does only for `output`."""
    return value is not None or name == "output"


def _join_said(one: Template | None, other: Template | None) -> Template | None:
    if one is None or other is None:
        return other if one is None else one
    return [*(one if isinstance(one, list) else [one]), *(other if isinstance(other, list) else [other])]


def change_model(model: M, changes: dict[str, object]) -> M:
    """Return the model with other fields. (A pydantic copy would copy the cached properties too.)"""
    said = {name: getattr(model, name) for name in model.model_fields_set}
    fields = {**said, **{name: value for name, value in changes.items() if _says(name, value)}}
    return type(model).model_construct(set(fields), **fields)


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
        args = {**pattern.args, **dict.fromkeys(gone, IGNORED)}
        return change_model(pattern, {"args": args, "weights": {**pattern.weights, **dict.fromkeys(gone, 0.0)}})

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

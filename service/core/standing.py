"""What a rubric expects of every trace, beside what is expected of it alone; and arguments that do not matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import TypeVar

from service.core.critics.plain import Present
from service.core.expectation import AnyOrder, CallAlternatives, CallPattern, Expectation, Position, Scope
from service.core.shapes import Template
from service.core.trace import Step, Trace

S = TypeVar("S", bound=Scope)
M = TypeVar("M", CallPattern, AnyOrder, CallAlternatives, Expectation)

CALLS = ("calls", "ordered", "unordered", "optional")
"""What says which calls are right: one of the two says it, never both."""
WHOLE_FIELDS = ("allow_extra", "answer", "state", "output", "gold")

IGNORED = Present(kind="present", optional=True)


def merge_expectations(own: Expectation | None, standing: Expectation | None) -> Expectation | None:
    """Both together. Pure.

    What must not be called, what must be said and what does not matter add up, those of the trace first. Counts are taken tool
    by tool, turns turn by turn, and the calls, the answer, the state, the output and the rest each as a whole: the trace's own
    word goes before the standing one.
    """
    if own is None or standing is None:
        return own or standing
    changes: dict[str, object] = {
        "disallowed": (*own.disallowed, *standing.disallowed),
        "counts": {**standing.counts, **own.counts},
        "ignore_args": (*own.ignore_args, *standing.ignore_args),
        "said": _join_said(own.said, standing.said),
        "turns": (*own.turns, *[one for one in standing.turns if one.turn not in {scope.turn for scope in own.turns}]),
    }
    changes |= {name: getattr(standing, name) for name in _list_taken(own, standing)}
    return _copy(own, changes)


def _list_taken(own: Expectation, standing: Expectation) -> Iterator[str]:
    """The fields that the standing expectation says and the trace's own does not."""
    said = own.model_fields_set
    if not any(getattr(own, name) for name in CALLS) and own.calls is None:
        yield from (name for name in CALLS if name in standing.model_fields_set)
    for name in WHOLE_FIELDS:
        own_word = name in said and _says(name, getattr(own, name))
        if name in standing.model_fields_set and not own_word:
            yield name


def _says(name: str, value: object) -> bool:
    """Whether a field that is given says anything: null does so of an output alone."""
    return value is not None or name == "output"


def _join_said(one: Template | None, other: Template | None) -> Template | None:
    if one is None or other is None:
        return other if one is None else one
    return [*(one if isinstance(one, list) else [one]), *(other if isinstance(other, list) else [other])]


def _copy(model: M, changes: dict[str, object]) -> M:
    """The model with other fields. (A pydantic copy would take the cached properties along.)"""
    said = {name: getattr(model, name) for name in model.model_fields_set}
    fields = {**said, **{name: value for name, value in changes.items() if _says(name, value)}}
    return type(model).model_construct(set(fields), **fields)


def is_ignored(expectation: Expectation | None, tool: str, argument: str) -> bool:
    """Whether an argument does not matter, by its name or by tool and name: `*_id`, `search.cursor`."""
    patterns = () if expectation is None else expectation.ignore_args
    return any(fnmatchcase(argument, one) or fnmatchcase(f"{tool}.{argument}", one) for one in patterns)


def leave_out_arguments(expectation: Expectation | None, trace: Trace) -> Expectation | None:
    """The expectation with what does not matter taken as anything or nothing, and weightless, in every call that it lists."""
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
        return _copy(
            pattern,
            {
                "args": {**pattern.args, **dict.fromkeys(gone, IGNORED)},
                "weights": {**pattern.weights, **dict.fromkeys(gone, 0.0)},
            },
        )

    turns = tuple(_relax_scope(one, relax) for one in expectation.turns)
    return _relax_scope(expectation, relax, turns=turns)


Relax = Callable[[CallPattern], CallPattern]


def _relax_scope(scope: S, relax: Relax, **more: object) -> S:
    said = {name: getattr(scope, name) for name in scope.model_fields_set}
    for name in CALLS:
        if isinstance(said.get(name), tuple):
            said[name] = tuple(_relax_position(one, relax) for one in said[name])
    said |= more
    return type(scope).model_construct(set(said), **said)


def _relax_position(position: Position, relax: Relax) -> Position:
    if isinstance(position, AnyOrder):
        return _copy(position, {"any_order": tuple(map(relax, position.any_order))})
    if isinstance(position, CallAlternatives):
        return _copy(position, {"any_of": tuple(map(relax, position.any_of))})
    return relax(position)


def list_ignored(expectation: Expectation | None, step: Step) -> frozenset[str]:
    """The arguments of a call that do not matter."""
    given = step.call.arguments or {}
    return frozenset(name for name in given if is_ignored(expectation, step.call.name, name))

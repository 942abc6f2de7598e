"""Merge what a rubric expects of every trace with what is expected of one trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from service.core.expectations.expectation import (
    AnyOrder,
    CallAlternatives,
    CallPattern,
    Expectation,
    build_allowed_ban,
)
from service.core.expectations.templates import Template

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

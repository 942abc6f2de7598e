"""Merge what a rubric expects of every trace with what is expected of one trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from service.core.expectations.expectation import AnyOrder, CallAlternatives, CallPattern, Expectation
from service.core.expectations.templates import Template

M = TypeVar("M", CallPattern, AnyOrder, CallAlternatives, Expectation)

CALLS = ("calls", "ordered", "unordered", "optional")
"""What says which calls are right: one of the two says it, never both."""
WHOLE_FIELDS = ("allow_extra", "answer", "state", "output", "gold")


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
    return change_model(own, changes)


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


def change_model(model: M, changes: dict[str, object]) -> M:
    """The model with other fields. (A pydantic copy would take the cached properties along.)"""
    said = {name: getattr(model, name) for name in model.model_fields_set}
    fields = {**said, **{name: value for name, value in changes.items() if _says(name, value)}}
    return type(model).model_construct(set(fields), **fields)

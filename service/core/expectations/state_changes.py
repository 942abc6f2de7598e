"""The state that is expected at the end, and how expected changes are applied to one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from pydantic import Field, JsonValue, model_validator

from service.core.json.pointers import split_pointer
from service.core.models.kinds import FrozenModel, Several
from service.errors import InputError


class StateChange(FrozenModel):
    """A change that should be made at a pointer: set it to `value`, or `remove` it."""

    path: str
    value: Any = None
    remove: bool = False

    @model_validator(mode="after")
    def _one_way(self) -> StateChange:
        if self.remove == ("value" in self.model_fields_set):
            raise ValueError("a change is to a `value`, or away with `remove`")
        return self


class StateExpectation(FrozenModel):
    """What the state should be at the end: the whole `final` state, or the `changes` to the initial one."""

    final: JsonValue = None
    changes: Several[StateChange] | None = None
    ignore: Several[str] = ()
    """Pointers to parts that do not matter; a `*` token stands for any one token."""
    keys: dict[str, str] = Field(default_factory=dict[str, str])
    """By pointer to a list: the field that identifies its items, so that their order does not matter."""

    @model_validator(mode="after")
    def _one_way(self) -> StateExpectation:
        if ("final" in self.model_fields_set) == (self.changes is not None):
            raise ValueError("a wanted state is given as `final` or as `changes`")
        return self


def patch_state(state: JsonValue, changes: Iterable[StateChange]) -> JsonValue:
    """Return a copy of the state with the changes made in order. Raises InputError for a pointer that leads nowhere.

    >>> patch_state({"a": [1]}, [StateChange(path="/a/-", value=2), StateChange(path="/b", value=None)])
    {'a': [1, 2], 'b': None}
    """
    root: list[JsonValue] = [deepcopy(state)]
    for n, change in enumerate(changes):
        try:
            _apply(root, change)
        except (ValueError, KeyError, IndexError, TypeError):
            place = f"/expected/state/changes/{n}/path"
            raise InputError.at(place, f"{change.path!r} leads nowhere in the initial state") from None
    return root[0]


INDEX = re.compile("0|[1-9][0-9]*")


def _parse_index(token: str) -> int:
    """Parse a reference token as an array index (RFC 6901: no sign, no leading zero)."""
    if not INDEX.fullmatch(token):
        raise ValueError(token)
    return int(token)


def _apply(root: list[JsonValue], change: StateChange) -> None:
    tokens = split_pointer(change.path)
    if change.remove and not tokens:
        raise ValueError("the whole state cannot be removed")
    holder: JsonValue | list[JsonValue] = root
    for token in ("0", *tokens)[:-1]:
        holder = _get_child(holder, token)
    last = ("0", *tokens)[-1]
    if isinstance(holder, list):
        _set_item(holder, last, change)
    elif isinstance(holder, dict):
        if change.remove:
            del holder[last]
        else:
            holder[last] = change.value
    else:
        raise TypeError("a scalar has no members")


def _get_child(holder: JsonValue | Sequence[JsonValue], token: str) -> JsonValue:
    if isinstance(holder, list):
        return holder[_parse_index(token)]
    if isinstance(holder, dict):
        return holder[token]
    raise TypeError("a scalar has no members")


def _set_item(items: list[JsonValue], token: str, change: StateChange) -> None:
    if token == "-" and not change.remove:  # noqa: S105 (RFC 6901: past the last item)
        items.append(change.value)
    elif change.remove:
        del items[_parse_index(token)]
    else:
        items[_parse_index(token)] = change.value

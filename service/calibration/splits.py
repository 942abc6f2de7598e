"""Which items a map is fitted to and which are held out: whole groups, by hash or as the items say, never single rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from service.calibration.labels import LabelledItem, Split
from service.errors import InputError

SEED = "callgrade"
"""The only default; it was not searched for."""
FOLDS = 5
"""Each item is held out once, from a map fitted on the other four fifths of the groups."""


def names_split(items: Iterable[LabelledItem]) -> bool:
    """Whether any item says which side it must be on: these sides are then the split, and nothing is left to chance."""
    return any(item.split is not None for item in items)


def read_split(items: Sequence[LabelledItem]) -> Mapping[str, Split]:
    """Return the side of each group, as its items say. If any item says `test`, a silent group is fitted, otherwise held out.

    InputError where two items of a group name different sides.
    """
    sides: dict[str, Split | None] = {}
    for item in items:
        known = sides.setdefault(item.group, item.split)
        if item.split is not None and known is not None and known != item.split:
            raise InputError.at(item.id, f"the group {item.group!r} is to be on both sides of the split")
        sides[item.group] = known or item.split
    default_side: Split = "fit" if "test" in sides.values() else "test"
    return {name: side or default_side for name, side in sides.items()}


def assign_folds(items: Iterable[LabelledItem], *, seed: str = SEED, folds: int = FOLDS) -> Mapping[str, int]:
    """Return the fold of each group, from 0: groups are dealt out in the order of the hash of their names.

    The order of items therefore does not matter, and another seed gives other folds. With fewer groups than folds, each has
    its own.
    """
    names = sorted({item.group for item in items}, key=lambda name: sha256(f"{seed}\0{name}".encode()).hexdigest())
    return {name: at % folds for at, name in enumerate(names)}

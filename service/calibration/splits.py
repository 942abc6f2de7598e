"""Which items a map is fitted to and which it is tried on: whole groups, by hash or as the items say, never by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from service.calibration.labels import LabelledItem, Split
from service.errors import InputError

SEED = "callgrade"
"""The one default; it was not searched."""
FOLDS = 5
"""Each item is held out once, from a map that the other four fifths of the groups were fitted with."""


def names_split(items: Iterable[LabelledItem]) -> bool:
    """Whether any item says on which side it must be: then that is the split, and nothing is left to chance."""
    return any(item.split is not None for item in items)


def read_split(items: Sequence[LabelledItem]) -> Mapping[str, Split]:
    """The side of each group, as its items say. Where one says `test`, a group that says nothing is fitted, else it is held out.

    InputError where two items of a group are wanted on two sides.
    """
    wanted: dict[str, Split | None] = {}
    for item in items:
        known = wanted.setdefault(item.group, item.split)
        if item.split is not None and known is not None and known != item.split:
            raise InputError.at(item.id, f"the group {item.group!r} is wanted on both sides of the split")
        wanted[item.group] = known or item.split
    rest: Split = "fit" if "test" in wanted.values() else "test"
    return {name: side or rest for name, side in wanted.items()}


def assign_folds(items: Iterable[LabelledItem], *, seed: str = SEED, folds: int = FOLDS) -> Mapping[str, int]:
    """The fold of each group, from 0: groups are dealt out in the order of the hash of their names.

    So the order of items does not matter, and another seed gives other folds. With fewer groups than folds each has its own.
    """
    names = sorted({item.group for item in items}, key=lambda name: _hash_group(seed, name))
    return {name: at % folds for at, name in enumerate(names)}


def _hash_group(seed: str, group: str) -> str:
    return sha256(f"{seed}\0{group}".encode()).hexdigest()

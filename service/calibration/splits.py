"""Which items a map is fitted to and which it is tried on: by group, by hash, never by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256

from service.calibration.labels import LabelledItem, Split
from service.errors import InputError

SEED = "callgrade"
"""The one default; it was not searched."""


def split_groups(items: Iterable[LabelledItem], *, seed: str = SEED, share: float = 0.5) -> Mapping[str, Split]:
    """Where each group goes. What an item's own `split` says goes before chance.

    The others are put in the order of the hash of their names, and the first `share` of them, rounded, are fitted. So the
    order of items does not matter, and another seed gives another split. InputError where two items of a group are wanted
    on two sides.
    """
    wanted: dict[str, Split | None] = {}
    for item in items:
        known = wanted.setdefault(item.group, item.split)
        if item.split is not None and known is not None and known != item.split:
            raise InputError.at(item.id, f"the group {item.group!r} is wanted on both sides of the split")
        wanted[item.group] = known or item.split
    free = sorted((name for name, split in wanted.items() if split is None), key=lambda name: _hash_group(seed, name))
    fitted = {*free[: round(len(free) * share)], *[name for name, split in wanted.items() if split == "fit"]}
    return {name: "fit" if name in fitted else "test" for name in wanted}


def _hash_group(seed: str, group: str) -> str:
    return sha256(f"{seed}\0{group}".encode()).hexdigest()

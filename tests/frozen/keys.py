"""Digests and keys by which kept answers are found again: an answer that is paid for stays one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

from tests.frozen.cases import Json, read_cases
from tests.frozen.doors import cache_keys, judge_digests, judge_levels, replies_kept
from tests.frozen.golden import canonical, differences, read_golden, write_golden

FILE = "keys.json"

CACHED = "demo: 10"
"""A case whose replies are kept."""

KEYS = 6
"""Cache keys of each judge."""


def make_keys() -> Json:
    """All of it."""
    kept = replies_kept(read_cases()[CACHED], {})[0]
    return json.loads(canonical({"judges": judge_digests(), "cache keys": _keys(), "cached replies": kept}))


def write_keys() -> None:
    """Writes what is so now."""
    write_golden(FILE, make_keys())


def check_keys() -> list[str]:
    """What differs from what was kept."""
    return differences(read_golden(FILE), make_keys(), most=20)


def _keys() -> dict[str, list[str]]:
    """Some keys of each judge: of cases that ask it, and of a rubric that asks it of any trace."""
    found: dict[str, list[str]] = {name: [] for name in judge_levels()}
    for judge, key in _all_keys():
        if len(found[judge]) < KEYS and key not in found[judge]:
            found[judge].append(key)
    assert all(found.values()), found
    return found


def _all_keys() -> Iterator[tuple[str, str]]:
    bodies = [body for name, body in read_cases().items() if name.startswith(("demo", "same", "wrong", "critic: 7"))]
    for body in bodies:
        yield from cache_keys({**body, "rubric": "four_step"})
    for name in judge_levels():
        check = {"kind": "judge", "judge": name}
        rubric = {"id": "one", "criteria": [{"id": "it", "stage": "arguments", "check": check}]}
        asked = ({"trace": body["trace"], "rubric": rubric} for body in bodies)
        yield from islice((pair for body in asked for pair in cache_keys(body)), KEYS)

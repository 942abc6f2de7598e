"""Bodies that are edited a little, and what the service says of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from tests.frozen.asking import Asker
from tests.frozen.cases import read_cases
from tests.frozen.golden import canonical, differences, digest, read_golden, write_golden
from tests.mutations import Path, edit, list_places

Json = Any

FILE = "corpus.json"

EACH = 45
"""Edits of one valid body: those whose names come first in an order by chance, the same each time."""


def seeds() -> dict[str, tuple[str, Json]]:
    """Valid bodies: the route, and what is sent."""
    cases = read_cases()
    return {f"score {name}": ("/v1/score", cases[name]) for name in SCORED}


SCORED = (
    "api: a call that is right",
    "api: a wrong argument and an extra call, with matchers and weights",
    "api: a rubric with changes",
    "api: an inline rubric",
    "demo: 1",
    "same conversation: anthropic 2",
)


def edits_of(body: Json) -> Iterator[tuple[str, Json]]:
    """Each place with each edit, by name."""
    yield "as it is", body
    named = [(f"{kind} {_pointer(path)}", path, kind) for path in list_places(body) for kind in EDITS]
    named.sort(key=lambda row: crc32(row[0].encode()))
    made = ((name, edited) for name, path, kind in named if (edited := edit(body, path, kind)) is not None)
    for _, row in zip(range(EACH), made, strict=False):
        yield row


EDITS = ("drop", "null", "wrong", "empty", "extreme", "unknown")


def _pointer(path: Path) -> str:
    return "".join(f"/{key}" for key in path) or "the whole"


def make_corpus() -> dict[str, dict[str, str]]:
    """What comes of each edit, by the name of its body."""
    with Asker() as ask:
        found = {name: dict(_answers(ask, route, body)) for name, (route, body) in seeds().items()}
    assert all(rows["as it is"][:3] in ("200", "202") for rows in found.values()), found
    return found


def _answers(ask: Asker, route: str, body: Json) -> Iterator[tuple[str, str]]:
    for name, edited in edits_of(body):
        answer = ask("POST", route, edited[0] if name != "as it is" else edited)
        yield name, _told(answer.status, json.loads(answer.body))


def _told(status: int, said: Json) -> str:
    if status == 202:
        return "202"
    if status == 200:
        return f"200 {digest(canonical(said))}"
    return " ".join([str(status), *[error["pointer"] for error in said["errors"][:1]]])


def write_corpus() -> None:
    """Writes what is so now."""
    write_golden(FILE, make_corpus())


def check_corpus() -> list[str]:
    """What differs from what was kept."""
    return differences(read_golden(FILE), make_corpus(), most=20)

"""Change valid JSON a little, in ways that break programs: the one list of edits for all tests of such bodies.

`python -m tests.mutations 30000` scores that many edited requests, and says what came of them.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path as File
from typing import Any

from service.core.json.pointers import build_pointer
from service.core.json.walk import walk
from service.engine import Engine, build_default_engine, report_json
from service.errors import InputError, Problem
from service.reading.strict_json import Limits, parse_strictly
from tests.bulk import WHOLE

Json = Any
Path = tuple[str | int, ...]

DEPTH = 2_000
HUGE = 10**400
SURROGATE = "\ud800"


def nest(levels: int, *, arrays: bool) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = [value] if arrays else {"a": value}
    return value


def _by_type(**chosen: Json) -> Callable[[Json], Json]:
    return lambda value: chosen.get(type(value).__name__)


REPLACED: dict[str, Callable[[Json], Json]] = {
    "null": lambda _: None,
    "wrong": _by_type(str=7, int="7", float="0.5", bool="true", list={"0": 1}, dict=["a"]),
    "empty": _by_type(str="", int=0, float=0.0, bool=False, list=[], dict={}),
    "extreme": _by_type(str="x" * 70_000, int=10**30, float=-1e308, list=[1] * 1_200, dict={"": {}}),
    "list": lambda value: [value, "text"],
    "object": lambda value: {"type": ["text"], "value": value},
    "number": lambda _: -1.5,
    "text": lambda _: '{"type": ["a"], "b": [1, {}',
    "huge": lambda _: HUGE,
    "not a number": lambda _: math.nan,
    "infinite": lambda _: -math.inf,
    "surrogate": lambda _: SURROGATE,
    "deep arrays": lambda _: nest(DEPTH, arrays=True),
    "deep objects": lambda _: nest(DEPTH, arrays=False),
}
"""Edits that put another value in a place, given the one that is there."""
HARMLESS = ("list", "object", "number", "text", "null", "wrong", "empty", "drop", "double", "unknown", "circle")
"""Edits that leave JSON which any parser takes, so that what follows the parser is reached."""
EDITS = (*REPLACED, "drop", "unknown", "double", "circle")


def list_places(value: Json) -> Iterator[Path]:
    """List the path of each value in a value, outermost first."""
    pending: list[tuple[Path, Json]] = [((), value)]
    while pending:
        path, here = pending.pop()
        yield path
        if isinstance(here, dict | list):
            inside = here.items() if isinstance(here, dict) else enumerate(here)
            pending += reversed([((*path, key), one) for key, one in inside])


def look(value: Json, path: Path) -> Json:
    for key in path:
        value = value[key]
    return value


def edit(body: Json, path: Path, name: str) -> list[Json] | None:
    """Return the body with the edit, in a list; None if the place cannot have it."""
    holder = [json.loads(json.dumps(body))]
    *way, last = (0, *path)
    around = look(holder, tuple(way))
    here = around[last]
    if name == "drop":
        if not path:
            return None
        del around[last]
    elif name == "unknown":
        if type(here) is not dict:
            return None
        here["nobody_knows"] = 1
    elif name == "double":
        if type(around) is not list or not path:
            return None
        around.insert(int(last), json.loads(json.dumps(here)))
    elif name == "circle":
        return _link(holder)
    else:
        around[last] = REPLACED[name](here)
    return holder


ID_NAMES = ("spanId", "span_id", "id")
PARENT_NAMES = ("parentSpanId", "parent_span_id", "parent_id")


def _link(holder: list[Json]) -> list[Json] | None:
    """Make each span the child of the next one, and the last one the child of the first."""
    spans: list[Json] = [one for one, *_ in walk(holder) if isinstance(one, dict) and "attributes" in one]
    ids = [next((one[name] for name in ID_NAMES if isinstance(one.get(name), str)), "x") for one in spans]
    for span, parent in zip(spans, [*ids[1:], *ids[:1]], strict=True):
        span.update(dict.fromkeys(PARENT_NAMES, parent))
    return holder if spans else None


def mutate(body: Json, rng: random.Random, *, below: Path = (), edits: Sequence[str] = EDITS) -> tuple[Json, list[str]]:
    """Make one to three edits below a path; return the body, and the edits by name and place."""
    made: list[str] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        path = (*below, *rng.choice(list(list_places(look(body, below)))))
        name = rng.choice(edits)
        edited = None if (name, path) == ("drop", below) else edit(body, path, name)
        if edited is not None:
            body = edited[0]
            made.append(f"{name} {build_pointer(*path)}")
        if name not in HARMLESS:  # no other edit could copy the body
            break
    return body, made


def write(value: Json, *, twice: Json = None) -> bytes:
    """Write any value as a sender may: NaN, numbers of any length, lone surrogates, any depth. `twice`: the object whose members
    are written two times.
    """
    pieces: list[str] = []
    pending: list[Json] = [(value,)]
    while pending:
        here = pending.pop()
        if isinstance(here, str):
            pieces.append(here)
        elif isinstance(here[0], dict | list):
            pending += reversed(_open(here[0], twice))
        else:
            pieces.append(str(here[0]) if type(here[0]) is int else json.dumps(here[0]))
    return "".join(pieces).encode()


def _open(container: Json, twice: Json) -> list[Json]:
    """List what a container is written as: text, and values in tuples."""
    if isinstance(container, list):
        inside = [piece for item in container for piece in (",", (item,))][1:]
        return ["[", *inside, "]"]
    members = [*container.items()] * (2 if container is twice else 1)
    inside = [piece for key, item in members for piece in (",", f"{json.dumps(key)}:", (item,))][1:]
    return ["{", *inside, "}"]


DATA = File(__file__).parent / "data"


@cache
def read_seeds() -> list[Json]:
    """Valid requests of all formats; for a long run also those of all tables."""
    from tests.intake.records import RECORDS

    traces = [case["input"] for cases in RECORDS.values() for case in cases]
    traces += json.loads((DATA / "traces" / "same_conversation.json").read_text("utf-8"))["forms"]
    for file in sorted((DATA / "formats" / "spans").glob("*.json")):
        traces.append({"format": "spans", **json.loads(file.read_text("utf-8"))["export"]})
    requests: list[Json] = [{"trace": trace} for trace in traces]
    if WHOLE:
        from tests.frozen.cases import read_cases

        requests += [{**body, "judges": "off"} for body in read_cases().values() if len(json.dumps(body)) < 40_000]
    return requests


def is_placed(problem: Problem) -> bool:
    """Whether a problem names its place: a pointer, or the line and column of what is no JSON."""
    return bool(problem.path) or "column" in problem.message


def find_outcome(engine: Engine, body: Json, *, sent: bool, rng: random.Random) -> str:
    """Score a body, as a program hands it over or as it is sent; return `report`, or `refused` if each problem is placed."""
    try:
        if sent:
            doubled = rng.choice([node.value for node in walk(body)]) if rng.random() < 0.1 else None
            body = parse_strictly(write(body, twice=doubled), Limits())
        report_json(engine.score(body))
    except InputError as error:
        return "refused" if all(map(is_placed, error.problems)) else f"refused without a place: {error}"
    return "report"


def run(number: int, *, seed: int) -> Counter[str]:
    """Score so many edited requests; return how often each outcome came, crashes with what was edited."""
    rng = random.Random(seed)  # noqa: S311 (a draw, no secret)
    engine, found = build_default_engine(), Counter[str]()
    rubrics = [rubric.id for rubric in engine.registry]
    for _ in range(number):
        body = {"judges": "off", **rng.choice(read_seeds())}
        if rng.random() < 0.3:
            body["rubric"] = rng.choice(rubrics)
        body, made = mutate(body, rng, below=("trace",), edits=HARMLESS if rng.random() < 0.7 else EDITS)
        try:
            found[find_outcome(engine, body, sent=rng.random() < 0.5, rng=rng)] += 1
        except Exception as error:  # noqa: BLE001 (each is what is looked for)
            found[f"crash: {type(error).__name__}: {str(error)[:100]} after {'; '.join(made)}"] += 1
    return found


if __name__ == "__main__":
    count = int(sys.argv[1])
    for outcome, times in run(count, seed=int(sys.argv[2]) if sys.argv[2:] else 0).most_common():
        sys.stdout.write(f"{times:7d} {outcome}\n")

"""Reports of all cases: under their own rubric and under every bundled one, without and with a judge."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from zlib import crc32

from service import Engine, InputError, Registry, report_json, score
from service.wiring import build_demo_judging
from tests.frozen.cases import Json, read_cases
from tests.frozen.golden import canonical, differences, digest, read_archive, read_golden, write_archive, write_golden

HASHES, WHOLE, READABLE = "reports.json", "reports.xz", "demo.json"

OWN = ("own off", "own unsaid", "own live")
JUDGED = "four_step live"

SHARE = 20
"""A run of the tests scores one of so many reports, the same ones each time; the command looks at all."""

Choice = Callable[[str, str], bool]

CLOCK = re.compile(rb'"latency_ms":[0-9.e+-]+')
"""The one thing in a report that depends on the machine."""


class Judge:
    """The engine with the stand-in as its judge, in an event loop of its own."""

    def __init__(self) -> None:
        self._engine = Engine(Registry(), judging=build_demo_judging())
        self._loop = asyncio.Runner()

    def score(self, body: Json) -> bytes:
        """The report, without what the clock said."""
        report = self._loop.run(self._engine.score_async(body))
        return CLOCK.sub(b'"latency_ms":0', report_json(report))


@cache
def judge() -> Judge:
    """One for all."""
    return Judge()


def score_body(body: Json, mode: str) -> tuple[bytes, list[str]]:
    """The report of a request, or no bytes and what is wrong with the request. `mode`: off, live, or unsaid."""
    body = {name: value for name, value in body.items() if name not in ("judges", "judge_model", "sandbox")}
    body |= {} if mode == "unsaid" else {"judges": mode}
    try:
        return (judge().score(body) if mode == "live" else report_json(score(body))), []
    except InputError as error:
        return b"", [f"{problem.path}: {problem.message}" for problem in error.problems]


def columns() -> list[str]:
    """Rubrics and modes."""
    return [*OWN, *[f"{rubric.id} off" for rubric in Registry()], JUDGED]


def every(case: str, column: str) -> bool:
    """All there are."""
    return True


def sample(case: str, column: str) -> bool:
    """What code alone makes of each case under its own rubric, and a share of the rest."""
    return column == OWN[0] or crc32(f"{case}|{column}".encode()) % SHARE == 0


def make_reports(choose: Choice) -> Iterator[tuple[str, str, str]]:
    """(case, column, report) of those chosen; in place of a report that is refused, what is wrong with the request."""
    named = columns()
    for case, body in read_cases().items():
        for column in named:
            if choose(case, column):
                yield case, column, _report(body, column)


def _report(body: Json, column: str) -> str:
    rubric, mode = column.split()
    raw, problems = score_body(body if rubric == "own" else {**body, "rubric": rubric}, mode)
    return raw.decode() or json.dumps({"refused": problems}, ensure_ascii=False)


def write_reports() -> None:
    """Writes what is so now."""
    whole = {f"{case} | {column}": text for case, column, text in make_reports(every)}
    named = columns()
    rows = {case: " ".join(digest(whole[f"{case} | {one}"].encode()) for one in named) for case in read_cases()}
    write_golden(HASHES, {"columns": named, "cases": rows})
    write_archive(WHOLE, whole)
    write_golden(READABLE, {name: json.loads(text) for name, text in whole.items() if _is_readable(name)})


def _is_readable(name: str) -> bool:
    return name.startswith("demo: ") and name.endswith(f"| {OWN[0]}")


def check_reports(choose: Choice) -> list[str]:
    """What differs from what was kept. A case that was added since then is not looked at."""
    kept = read_golden(HASHES)
    cases = {case: dict(zip(kept["columns"], row.split(), strict=True)) for case, row in kept["cases"].items()}
    gone = [f"{case}: the case is gone" for case in cases.keys() - read_cases().keys()]
    gone += [f"{column}: the rubric is gone" for column in set(kept["columns"]) - set(columns())]
    made = make_reports(lambda case, column: column in cases.get(case, {}) and choose(case, column))
    changed = {
        f"{case} | {column}": text for case, column, text in made if digest(text.encode()) != cases[case][column]
    }
    return gone + (_changes(changed) if changed else [])


def _changes(changed: dict[str, str]) -> list[str]:
    whole = read_archive(WHOLE)
    return [f"{name}: {_change(whole[name], text)}" for name, text in changed.items()]


def _change(kept: str, now: str) -> str:
    found = differences(json.loads(kept), json.loads(now))
    return found[0] if found else f"other bytes of the same value: {digest(canonical(kept))}, {digest(canonical(now))}"

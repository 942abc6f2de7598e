"""Reports of all cases: under their own rubric and under every bundled one, without and with a judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from zlib import crc32

from tests.frozen.cases import Json, read_cases
from tests.frozen.doors import rubric_ids, score_body
from tests.frozen.golden import canonical, differences, digest, read_archive, read_golden, write_archive, write_golden

HASHES, WHOLE, READABLE = "reports.json", "reports.xz", "demo.json"

OWN = ("own off", "own unsaid", "own live")
JUDGED = "four_step live"

SHARE = 20
"""A run of the tests scores one of so many reports, the same ones each time; the command looks at all."""

Choice = Callable[[str, str], bool]


def columns() -> list[str]:
    """Rubrics and modes."""
    return [*OWN, *[f"{name} off" for name in rubric_ids()], JUDGED]


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

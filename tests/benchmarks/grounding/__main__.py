"""Print the figures of the sets: `python -m tests.benchmarks.grounding [--write | --wrong] [FOLDER...]`.

`--wrong` lists the
rows that go wrong, but none of `held_back`; `--write` writes `rates.yaml`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import yaml

from tests.benchmarks.grounding.measure import Figure, count_findings, measure
from tests.benchmarks.grounding.rows import DATA, HELD_BACK, SEEN, read_folder

HEADING = (
    "# How many texts of both folders carry each finding of code: `python -m tests.benchmarks.grounding --write`.\n"
)
SHARED = (
    Path(os.environ.get("CALLGRADE_SHARED_DATA", DATA.parents[3] / "shared" / "data")).parent / "cases" / "grounding"
)


def main(arguments: list[str]) -> None:
    folders = [Path(one) for one in arguments if not one.startswith("-")]
    folders = folders or [folder for folder in (SEEN, HELD_BACK, SHARED) if folder.exists()]
    if "--write" in arguments:
        write_rates()
    elif "--wrong" in arguments:
        for folder in folders:
            list_wrong(folder)
    else:
        figures = {folder.name: measure([folder]) for folder in folders}
        print_table(figures)


def print_table(figures: dict[str, dict[str, Figure]]) -> None:
    print("| | aim | " + " | ".join(figures) + " |\n|---|---|" + "---|" * len(figures))
    for name, one in next(iter(figures.values())).items():
        cells = [_render(each[name]) for each in figures.values()]
        print(f"| {name} | {'<=' if one.at_most else '>='} {one.aim} % | {' | '.join(cells)} |")


def _render(one: Figure) -> str:
    return f"{one.percent:.1f} % ({one.count} of {one.of}){'' if one.reached or not one.of else ' !'}"


def list_wrong(folder: Path) -> None:
    for read in read_folder(folder) if folder.name != HELD_BACK.name else ():
        nowhere = [value.value for value in read.values if value.origin == "nowhere"]
        findings = [one.message for text in read.texts for one in text.findings]
        if read.noticed == read.row.right or (read.row.right and nowhere):
            print(read.row.id, read.row.kind, read.verdict, "nowhere:", nowhere, findings)


def write_rates() -> None:
    rates = yaml.safe_dump(count_findings([SEEN, HELD_BACK]), sort_keys=False)
    (DATA / "rates.yaml").write_text(f"{HEADING}{rates}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

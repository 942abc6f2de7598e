"""The figures of a set: how often right texts pass, wrong ones are noticed, and values are shown where they stand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from service.core.grounding.origins import Grounded
from tests.benchmarks.grounding.rows import Read, find_change, iter_rows, read_folder, read_texts

SLIPS = frozenset({"digit_flip", "digits_swapped", "id_char"})
ELSEWHERE = frozenset({"wrong_row", "wrong_field", "name_swap"})
WORDS = frozenset({"status_reversed", "comparison_reversed"})
"""Kinds of false answers that change no value: they are for a judge."""


class Figure(NamedTuple):
    """A count of a whole, and the share to aim at: at least that much, or at most."""

    count: int
    of: int
    aim: float
    at_most: bool = False

    @property
    def percent(self) -> float:
        return 100 * self.count / self.of if self.of else 0.0

    @property
    def reached(self) -> bool:
        return self.percent <= self.aim if self.at_most else self.percent >= self.aim


def measure(folders: Sequence[Path]) -> dict[str, Figure]:
    """Compute every figure on the rows of some folders together."""
    reads = [read for folder in folders for read in read_folder(folder)]
    answers = {read.row.text: read for read in reads if read.row.file == "true"}
    right = [read for read in reads if read.row.right]
    deeds = [read for read in reads if read.row.file == "actions"]
    done = [read for read in deeds if read.row.right]
    alike = [read for read in reads if "lookalikes" in read.row.file]
    wrong = [read for read in reads if read.row.file == "false"]
    placed = list(_place_wrong_values(wrong, answers))
    absent, near, other = (
        [shown for at, shown in placed if at == where] for where in ("nowhere", "anywhere", "elsewhere")
    )
    spelled = [read for read in reads if read.row.file == "spellings" and read.row.right]
    values = [value for read in answers.values() for value in read.values]
    return {
        "right texts proved wrong": _count([read.verdict == "fail" for read in right], 0, at_most=True),
        "true answers opened": _count([read.verdict == "open" for read in answers.values()], 2, at_most=True),
        "wrong texts proved wrong": _count([read.verdict == "fail" for read in reads if not read.row.right], 0),
        "false own actions noticed": _count([read.noticed for read in deeds if not read.row.right], 50),
        "true own actions failed": _count([read.verdict == "fail" for read in done], 0, at_most=True),
        "true own actions opened": _count([read.verdict == "open" for read in done], 2, at_most=True),
        "look-alikes opened": _count([read.verdict == "open" for read in alike], 100, at_most=True),
        "slips noticed": _count([read.noticed for read in wrong if read.row.kind in SLIPS], 35),
        "wrong, in no result: noticed, or nowhere with the right one near": _count(absent, 70),
        "the same, or of another origin with the right one near": _count(near, 70),
        "wrong, from elsewhere: shown where": _count(other, 90),
        "true values marked nowhere": _count([value.origin == "nowhere" for value in values], 6, at_most=True),
        "right spellings recognised": _count([_is_recognised(read) for read in spelled], 95),
    }


def _count(each: Sequence[bool], aim: float, *, at_most: bool = False) -> Figure:
    return Figure(sum(each), len(each), aim, at_most)


def _is_recognised(read: Read) -> bool:
    return not read.noticed and all(value.origin != "nowhere" for value in read.values)


def _place_wrong_values(wrong: Sequence[Read], answers: Mapping[str, Read]) -> Iterator[tuple[str, bool]]:
    """Say of each false answer whether its wrong value stands elsewhere or nowhere, and whether that can be seen."""
    for read in wrong:
        said = _list_changed(read, read.row.instead)
        held = any(value.origin == "found" and value.how is None for value in said)
        if read.row.kind in ELSEWHERE or (held and read.row.kind not in WORDS):
            yield "elsewhere", read.noticed or any(value.sources for value in said)
        elif read.row.kind not in WORDS:
            meant = _list_changed(answers[read.row.instead], read.row.text)
            nowhere = [value for value in said if value.origin == "nowhere"]
            noticed = read.noticed or bool(nowhere and not meant)  # an invented value stands for none
            yield "nowhere", noticed or any(_is_near(value, one) for value in nowhere for one in meant)
            yield "anywhere", noticed or any(_is_near(value, one) for value in said for one in meant)


def _list_changed(read: Read, other: str) -> list[Grounded]:
    start, end = find_change(read.row.text, other)
    return [one for one in read.values if (one.start or 0) < end and start < (one.end or 0)]


def _is_near(said: Grounded, meant: Grounded) -> bool:
    """Whether one of the nearest values is what was meant: held or derived from the same place."""
    derived = meant.origin == "derived"
    return any(near.pointer in meant.sources and (near.how is not None) >= derived for near in said.nearest)


def count_findings(folders: Sequence[Path]) -> dict[str, dict[str, dict[str, int]]]:
    """Count the texts that carry each finding of code: by `proved` or `suspected`, code, and kind of text; `of`: all texts."""
    found: dict[str, dict[str, Counter[str]]] = {sort: defaultdict(Counter) for sort in ("of", "proved", "suspected")}
    for row in [row for folder in folders for row in iter_rows(folder)]:
        sort = f"{'right' if row.right else 'wrong'} {row.file}"
        found["of"]["texts"][sort] += 1
        for proved, code in {(one.proved, one.code) for text in read_texts(row) for one in text.findings}:
            found["proved" if proved else "suspected"][code][sort] += 1
    return {
        sort: {code: dict(sorted(counts.items())) for code, counts in sorted(each.items())}
        for sort, each in found.items()
    }

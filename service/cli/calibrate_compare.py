"""`callgrade calibrate compare`: two judges on the same labelled items."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from service.calibrating.comparing import (
    JudgeComparison,
    Side,
    compared,
    sides_of_predictions,
    sides_of_report,
)
from service.calibrating.figures import Resampling
from service.calibrating.results import as_json
from service.calibrating.wording import NAMES, shown
from service.cli.console import console, plural
from service.cli.exits import ExitCode
from service.cli.labelled import Sources, read_labelled, read_predicted, read_run
from service.cli.sections import MOST, Section, markdown, show
from service.errors import InputError


def compare_judges(
    a: Path,
    b: Path,
    *,
    labels: Path | None = None,
    judges: tuple[str | None, str | None] = (None, None),
    draws: int = 1_000,
    output_format: Literal["table", "json", "markdown"] = "table",
) -> ExitCode:
    """Compare two judges: of runs (their held-out items, calibrated) or of predictions (all labelled items, raw)."""
    found = compared(_sides(a, labels), _sides(b, labels), judges, resampling=Resampling(draws))
    if output_format == "json":
        sys.stdout.write(as_json(found).decode())
    elif output_format == "markdown":
        sys.stdout.write(markdown(_sections(found)))
    else:
        show(console(), _sections(found))
    return ExitCode.PASSED


def _sides(source: Path, labels: Path | None) -> tuple[Side, ...]:
    if source.is_dir() or source.suffix == ".json":
        return sides_of_report(read_run(source))
    if labels is None:
        raise InputError.at(str(source), "predictions are compared by labels; name them with --labels")
    return sides_of_predictions(read_labelled(Sources(labels)).labels, read_predicted([source]))


def _sections(found: Iterable[JudgeComparison]) -> Iterator[Section]:
    for one in found:
        yield Section(f"{one.b} against {one.a} on {one.criterion}", *_figures(one), lines=tuple(_lines(one)))
        if one.differing:
            yield _differing(one)


def _figures(one: JudgeComparison) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    rows = [(NAMES[row.name], shown(row.a), shown(row.b), shown(row.difference)) for row in one.figures]
    return ("", "a", "b", "b - a"), tuple(rows)


def _lines(one: JudgeComparison) -> Iterator[str]:
    yield f"{plural(one.items, 'item')} of {plural(one.groups, 'group')}; intervals at 95 % by groups, both sides together"
    yield (
        f"both right {one.both_right}, a alone {one.a_right}, b alone {one.b_right}, neither {one.neither_right}; "
        f"McNemar's exact test: p = {one.p_value:.3g}"
        + (", for items that were independent" if one.groups < one.items else "")
    )
    for side, count in (("a", one.only_a), ("b", one.only_b)):
        if count:
            yield f"only in {side}, not counted: {plural(count, 'item')}"


def _differing(one: JudgeComparison) -> Section:
    rows = [
        (item.id, "pass" if item.label else "fail", f"{item.a:.3f}", f"{item.b:.3f}", "b" if item.b_is_right else "a")
        for item in one.differing[:MOST]
    ]
    more = len(one.differing) - len(rows)
    lines = (f"and {more} more; --format json has all",) if more else ()
    return Section(
        f"Where they differ: {plural(len(one.differing), 'item')}",
        ("item", "label", "a", "b", "right"),
        tuple(rows),
        lines,
    )

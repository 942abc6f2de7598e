"""A sign of life on standard error, for work that takes its time and a person who waits for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 1.0
"""Seconds without a sign."""


def show_count(items: Iterable[T], *, silent: bool = False, at_once: bool = False) -> Iterator[T]:
    """The same items; how many there were so far is shown on a terminal once a second has passed.

    `at_once`: from the beginning, where even the first item may take long.
    """
    if silent or not sys.stderr.isatty():
        yield from items
        return
    if at_once:
        yield from _show_progress(iter(items), 0)
        return
    start = time.monotonic()
    waiting = iter(items)
    count = 0
    for item in waiting:
        yield item
        count += 1
        if time.monotonic() - start > PATIENCE:
            break
    else:
        return
    yield from _show_progress(waiting, count)


def _show_progress(items: Iterator[T], count: int) -> Iterator[T]:
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    from service.cli.rendering.console import error_console  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.completed} traces scored"), TimeElapsedColumn())
    with Progress(*columns, console=error_console(), transient=True) as progress:
        task = progress.add_task("scoring", total=None, completed=count)
        for item in items:
            yield item
            progress.advance(task)

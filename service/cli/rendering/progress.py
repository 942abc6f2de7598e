"""Show a counter on standard error while a person waits for long work."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

QUIET_S = 1.0
"""Seconds before the counter appears."""


def show_count(items: Iterable[T], *, silent: bool = False, at_once: bool = False) -> Iterator[T]:
    """Yield the items unchanged; on a terminal, show how many there were so far once a second has passed.

    `at_once`: show it from the start, because even the first item may take long.
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
        if time.monotonic() - start > QUIET_S:
            break
    else:
        return
    yield from _show_progress(waiting, count)


def _show_progress(items: Iterator[T], count: int) -> Iterator[T]:
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    from service.cli.rendering.console import build_error_console  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.completed} traces scored"), TimeElapsedColumn())
    with Progress(*columns, console=build_error_console(), transient=True) as progress:
        task = progress.add_task("scoring", total=None, completed=count)
        for item in items:
            yield item
            progress.advance(task)

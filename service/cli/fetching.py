"""Fetch what came of a job: the lines of a batch, resuming where an earlier fetch stopped, or a calibration."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import typer

from service.cli.exits import ExitCode
from service.cli.following import JobProgress, explain_pause, require_judge, watch_to_the_end
from service.cli.screen import pluralize, say
from service.client.failures import ForeignError
from service.client.jobs import PATIENCE_S, BatchClient, CalibrationClient, Kind
from service.errors import CallgradeError
from service.store.jobs.batches import Batch

MIN_RETRY_DELAY_S, MAX_RETRY_DELAY_S = 0.1, 10.0
"""The first and the longest delay before retrying a broken connection, in seconds."""

POLL_DELAY_S = 1.0
"""Seconds between two polls for more lines."""


class FetchProgress(NamedTuple):
    """How far a fetch got: where to continue, whether all lines are there, and the batch if its budget paused it."""

    offset: int
    complete: bool
    paused: Batch | None = None


def fetch(client: BatchClient, batch_id: str, kind: Kind, *, output: Path | None, wait: bool) -> ExitCode:
    """Fetch results or errors, as JSON Lines in the order of the items."""
    if output is None:
        progress = _fetch_lines(client, batch_id, kind, _print_lines, offset=0, wait=wait)
        if not progress.complete:
            say(f"{_explain_gap(progress)}; with --output FILE the next fetch continues there")
        return ExitCode.PASSED
    with _open_partial_file(output, batch_id, kind) as (path, file, offset):
        progress = _fetch_lines(client, batch_id, kind, file.write, offset=offset, wait=wait)
        file.flush()
        if progress.complete:
            path.replace(output)
            return ExitCode.PASSED
    say(f"{_explain_gap(progress)}; they are in {path}; run the same command again to continue")
    return ExitCode.FAILED


def _explain_gap(progress: FetchProgress) -> str:
    why = "the batch has not ended" if progress.paused is None else explain_pause(progress.paused)
    return f"{why}; the first {pluralize(progress.offset, 'item')} are done"


def _print_lines(lines: bytes) -> None:
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


def _fetch_lines(
    client: BatchClient, batch_id: str, kind: Kind, write: Callable[[bytes], object], *, offset: int, wait: bool
) -> FetchProgress:
    """Write whole lines, starting at an offset. `wait`: continue until the batch ends or its budget pauses it.

    UnreachableError if nothing listens at the start, or after PATIENCE_S seconds without an answer.
    """
    start, pause = time.monotonic(), MIN_RETRY_DELAY_S
    answered_at: float | None = None
    with JobProgress() as view:
        while True:
            last = b""
            try:
                with client.outcomes(batch_id, kind, offset=offset) as outcomes:
                    for last in outcomes.parts:
                        write(last)
                offset, last = outcomes.next_offset, b""
                answered_at, pause = time.monotonic(), POLL_DELAY_S
                if outcomes.complete or not wait:
                    return FetchProgress(offset, outcomes.complete)
                batch = client.find(batch_id)
            except CallgradeError as error:
                offset = _find_next_offset(last, offset)
                was_there = answered_at is not None or getattr(error, "connected", True)
                waited = time.monotonic() - (answered_at or start)
                if not (error.retryable and was_there) or waited > PATIENCE_S:
                    raise
                if pause in (MIN_RETRY_DELAY_S, POLL_DELAY_S):
                    view.print_line(f"{error}; trying again")
            else:
                if batch.status == "paused_budget":
                    return FetchProgress(offset, complete=False, paused=batch)
                require_judge(batch)
                view.show(batch)
            time.sleep(pause)
            pause = min(MAX_RETRY_DELAY_S, pause * 2)


def _find_next_offset(lines: bytes, offset: int) -> int:
    """Return the offset after the last line; `offset` if there are no lines."""
    return cast("int", json.loads(lines.splitlines()[-1])["index"]) + 1 if lines else offset


@contextmanager
def _open_partial_file(output: Path, batch_id: str, kind: Kind) -> Generator[tuple[Path, BinaryIO, int]]:
    """Open the file beside `output` that collects lines until all are there; yield it with the offset to continue at.

    Keeps what an earlier fetch wrote, except an incomplete last line. A usage error if the file cannot be written.
    """
    path = output.with_name(f"{output.name}.{batch_id}.{kind}.part")
    try:
        with path.open("a+b") as file:
            file.seek(0)
            end, last = 0, b""
            for line in file:
                if line.endswith(b"\n"):
                    end, last = end + len(line), line
            file.truncate(end)
            yield path, file, _find_next_offset(last, 0)
    except OSError as error:
        raise typer.BadParameter(f"{output}: {error.strerror}", param_hint="--output") from None


def fetch_calibration(client: CalibrationClient, name: str, out: Path, *, wait: bool) -> ExitCode:
    """Write a completed calibration as `callgrade calibrate run` would."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 (only calibrations need these)
    from pydantic_core import to_json  # noqa: PLC0415

    from service.calibration.results import CalibrationRun, read_report  # noqa: PLC0415
    from service.cli.calibrating import write_run  # noqa: PLC0415
    from service.core.judging.fits import Fit  # noqa: PLC0415

    if wait and (code := watch_to_the_end(client, name)) != ExitCode.PASSED:
        return code
    report, fits, form = client.report(name), client.fits(name), TypeAdapter[Fit](Fit)
    try:
        read = [form.validate_json(to_json(file["fit"])) for file in json.loads(fits)["data"]]
        run = CalibrationRun(read_report(report), tuple(read))
    except (ValidationError, ValueError, LookupError, TypeError):
        raise ForeignError from None
    write_run(run, out)
    return ExitCode.PASSED

"""Fetch what came of a job: the lines of a batch, resuming where an earlier fetch stopped, or a calibration."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import typer

from service.cli.exits import ExitCode
from service.cli.remote.following import JobProgress, explain_pause, require_judge, watch_to_the_end
from service.cli.rendering.console import pluralize, say
from service.client.failures import ForeignError
from service.client.jobs import PATIENCE_S, BatchClient, CalibrationClient, Kind
from service.errors import CallgradeError
from service.store.jobs.batches import Batch

MIN_RETRY_DELAY_S, MAX_RETRY_DELAY_S = 0.1, 10.0
"""The first and the longest delay before retrying a broken connection, in seconds."""

POLL_DELAY_S = 1.0
"""Seconds between two polls for more lines."""


def fetch(
    client: BatchClient, batch_id: str, kind: Kind, *, output: Path | None, offset: int | None, wait: bool
) -> ExitCode:
    """Fetch results or errors, as JSON Lines in the order of the items."""
    if output is not None and offset is not None:
        raise typer.BadParameter("not with --output, which continues where it stopped", param_hint="--offset")
    fetcher = Fetcher(client, batch_id, kind)
    if output is None:
        progress = fetcher.run(_print_lines, offset=offset or 0, wait=wait)
        if not progress.complete:
            say(f"{_explain_gap(progress)}; continue with --offset {progress.offset}")
        return ExitCode.PASSED
    return _fetch_to(output, fetcher, batch_id, kind, wait=wait)


def _fetch_to(output: Path, fetcher: Fetcher, batch_id: str, kind: Kind, *, wait: bool) -> ExitCode:
    with open_partial_file(output, batch_id, kind) as (path, file, offset):
        progress = fetcher.run(file.write, offset=offset, wait=wait)
        file.flush()
        if progress.complete:
            path.replace(output)
            return ExitCode.PASSED
    say(f"{_explain_gap(progress)}; they are in {path}; run the same command again to continue")
    return ExitCode.FAILED


def _explain_gap(progress: FetchProgress) -> str:
    """Explain why lines are missing."""
    if progress.batch is not None:
        return f"{explain_pause(progress.batch)}; the first {pluralize(progress.offset, 'item')} are done"
    return f"the batch has not ended; the first {pluralize(progress.offset, 'item')} are done"


def _print_lines(lines: bytes) -> None:
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """How far a fetch got."""

    offset: int
    """Where to continue."""
    complete: bool
    """Whether all lines are there and no more will come."""
    batch: Batch | None = None
    """The batch, if its state was read."""


class Fetcher:
    """Fetches the lines of one batch."""

    def __init__(
        self,
        client: BatchClient,
        batch_id: str,
        kind: Kind,
        *,
        patience: float = PATIENCE_S,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """`patience`: seconds for which to retry a service that cannot be reached."""
        self._client = client
        self._batch_id = batch_id
        self._kind: Kind = kind
        self._patience = patience
        self._sleep = sleep

    def run(self, write: Callable[[bytes], object], *, offset: int = 0, wait: bool = False) -> FetchProgress:
        """Write whole lines, starting at an offset. `wait`: continue until the batch ends or its budget pauses it.

        UnreachableError if nothing listens at the start, or after `patience` seconds without an answer.
        """
        start, pause = time.monotonic(), MIN_RETRY_DELAY_S
        answered_at: float | None = None
        with JobProgress() as progress_view:
            while True:
                try:
                    offset, complete = self._fetch_part(write, offset)
                    answered_at, pause = time.monotonic(), POLL_DELAY_S
                    if complete or not wait:
                        return FetchProgress(offset, complete)
                    batch = self._find_batch(offset)
                    if batch.status == "paused_budget":
                        return FetchProgress(offset, complete, batch)
                    require_judge(batch)
                    progress_view.show(batch)
                except _FetchError as failure:
                    offset = failure.offset
                    was_there = answered_at is not None or getattr(failure.error, "connected", True)
                    waited = time.monotonic() - (answered_at or start)
                    if not (failure.error.retryable and was_there) or waited > self._patience:
                        raise failure.error from None
                    if pause in (MIN_RETRY_DELAY_S, POLL_DELAY_S):
                        progress_view.print_line(f"{failure.error}; trying again")
                self._sleep(pause)
                pause = min(MAX_RETRY_DELAY_S, pause * 2)

    def _fetch_part(self, write: Callable[[bytes], object], offset: int) -> tuple[int, bool]:
        last = b""
        try:
            with self._client.outcomes(self._batch_id, self._kind, offset=offset) as outcomes:
                for part in outcomes.parts:
                    write(part)
                    last = part
        except CallgradeError as error:
            raise _FetchError(_find_next_offset(last, offset), error) from None
        else:
            return outcomes.next_offset, outcomes.complete

    def _find_batch(self, offset: int) -> Batch:
        try:
            return self._client.find(self._batch_id)
        except CallgradeError as error:
            raise _FetchError(offset, error) from None


class _FetchError(Exception):
    def __init__(self, offset: int, error: CallgradeError) -> None:
        self.offset = offset
        self.error = error


def _find_next_offset(lines: bytes, offset: int) -> int:
    """Return the offset after the last line; `offset` if there are no lines."""
    if not lines:
        return offset
    return cast("int", json.loads(lines.splitlines()[-1])["index"]) + 1


@contextmanager
def open_partial_file(output: Path, batch_id: str, kind: Kind) -> Generator[tuple[Path, BinaryIO, int]]:
    """Open the file beside `output` that collects lines until all are there; yield it with the offset to continue at.

    Keeps what an earlier fetch wrote, except an incomplete last line. A usage error if the file cannot be written.
    """
    path = output.with_name(f"{output.name}.{batch_id}.{kind}.part")
    try:
        with path.open("a+b") as file:
            yield path, file, _find_resume_offset(file)
    except OSError as error:
        raise typer.BadParameter(f"{output}: {error.strerror}", param_hint="--output") from None


def _find_resume_offset(file: BinaryIO) -> int:
    file.seek(0)
    end, last = 0, b""
    for line in _drop_incomplete(file):
        end, last = end + len(line), line
    file.truncate(end)
    return _find_next_offset(last, 0)


def _drop_incomplete(lines: Iterable[bytes]) -> Iterable[bytes]:
    return (line for line in lines if line.endswith(b"\n"))


def fetch_calibration(client: CalibrationClient, name: str, out: Path, *, wait: bool) -> ExitCode:
    """Write a completed calibration as `callgrade calibrate run` would."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 (only calibrations need these)
    from pydantic_core import to_json  # noqa: PLC0415

    from service.calibration.results import CalibrationRun, read_report  # noqa: PLC0415
    from service.cli.calibrating.runs import write_run  # noqa: PLC0415
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

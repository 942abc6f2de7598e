"""Fetching the results or errors of a batch, and going on where a connection broke or an earlier fetch stopped."""

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
from service.cli.remote.progress import Progression, explain_pause, require_judge
from service.cli.remote.service import Service
from service.cli.rendering.console import plural, say
from service.client.blocking import BatchClient
from service.client.outcome_lines import Kind
from service.client.watch import PATIENCE_S
from service.errors import CallgradeError
from service.store.jobs.batches import Batch

SHORTEST, LONGEST = 0.1, 10.0
"""Seconds before a broken connection is made again, at first and at most."""

NEXT = 1.0
"""Seconds between two looks for more."""


def fetch(
    service: Service, batch_id: str, kind: Kind, *, output: Path | None, offset: int | None, wait: bool
) -> ExitCode:
    """Fetches results or errors, as lines of JSON in the order of the items."""
    if output is not None and offset is not None:
        raise typer.BadParameter("a file goes on where it was left by itself", param_hint="--offset")
    with service.batches() as client:
        fetching = Fetch(client, batch_id, kind)
        if output is None:
            fetched = fetching.run(_print_lines, offset=offset or 0, wait=wait)
            if not fetched.complete:
                say(f"{_front(fetched)}; --offset {fetched.offset} goes on from there")
            return ExitCode.PASSED
        return _fetch_to(output, fetching, batch_id, kind, wait=wait)


def _fetch_to(output: Path, fetching: Fetch, batch_id: str, kind: Kind, *, wait: bool) -> ExitCode:
    with open_part(output, batch_id, kind) as (path, file, offset):
        fetched = fetching.run(file.write, offset=offset, wait=wait)
        file.flush()
        if fetched.complete:
            path.replace(output)
            return ExitCode.PASSED
    say(f"{_front(fetched)}; they are in {path}, and the same command goes on from there")
    return ExitCode.FAILED


def _front(fetched: FetchProgress) -> str:
    """Why not all is there."""
    if fetched.batch is not None:
        return f"{explain_pause(fetched.batch)}; {fetched.offset} items are behind it"
    return f"the batch has not ended; the first {plural(fetched.offset, 'item')} are done"


def _print_lines(lines: bytes) -> None:
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """How far a fetch came."""

    offset: int
    """Where to go on."""
    complete: bool
    """Whether nothing comes after it, now or later."""
    batch: Batch | None = None
    """The batch, as far as it was looked at."""


class Fetch:
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
        """`patience`: seconds for which a service that cannot be reached is tried."""
        self._client = client
        self._batch_id = batch_id
        self._kind: Kind = kind
        self._patience = patience
        self._sleep = sleep

    def run(self, write: Callable[[bytes], object], *, offset: int = 0, wait: bool = False) -> FetchProgress:
        """Writes whole lines from an offset on. `wait`: until the batch has ended, or is paused for its budget.

        UnreachableError where nobody listens at first, and after `patience` seconds without an answer.
        """
        begun, pause = time.monotonic(), SHORTEST
        answered_at: float | None = None
        with Progression("waiting") as progression:
            while True:
                try:
                    offset, complete = self._part(write, offset)
                    answered_at, pause = time.monotonic(), NEXT
                    if complete or not wait:
                        return FetchProgress(offset, complete)
                    batch = self._look(offset)
                    if batch.status == "paused_budget":
                        return FetchProgress(offset, complete, batch)
                    require_judge(batch)
                    progression.show(batch)
                except _Broken as broken:
                    offset = broken.offset
                    was_there = answered_at is not None or getattr(broken.error, "connected", True)
                    waited = time.monotonic() - (answered_at or begun)
                    if not (broken.error.retryable and was_there) or waited > self._patience:
                        raise broken.error from None
                    if pause in (SHORTEST, NEXT):
                        progression.tell(f"{broken.error}; it is tried again")
                self._sleep(pause)
                pause = min(LONGEST, pause * 2)

    def _part(self, write: Callable[[bytes], object], offset: int) -> tuple[int, bool]:
        last = b""
        try:
            with self._client.outcomes(self._batch_id, self._kind, offset=offset) as found:
                for part in found.parts:
                    write(part)
                    last = part
        except CallgradeError as error:
            raise _Broken(_after(last, offset), error) from None
        else:
            return found.next_offset, found.complete

    def _look(self, offset: int) -> Batch:
        try:
            return self._client.find(self._batch_id)
        except CallgradeError as error:
            raise _Broken(offset, error) from None


class _Broken(Exception):  # noqa: N818 (it goes no further than this module)
    def __init__(self, offset: int, error: CallgradeError) -> None:
        self.offset = offset
        self.error = error


def _after(lines: bytes, offset: int) -> int:
    """The offset after the last of some lines; `offset` where there is none."""
    if not lines:
        return offset
    return cast("int", json.loads(lines.splitlines()[-1])["index"]) + 1


@contextmanager
def open_part(output: Path, batch_id: str, kind: Kind) -> Generator[tuple[Path, BinaryIO, int]]:
    """The file beside `output` that takes lines until all are there, and the offset at which it goes on.

    What an earlier fetch of the same has left is kept, but for a line without its end. A usage error where it cannot be
    written.
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
    for line in _drop_broken(file):
        end, last = end + len(line), line
    file.truncate(end)
    return _after(last, 0)


def _drop_broken(lines: Iterable[bytes]) -> Iterable[bytes]:
    return (line for line in lines if line.endswith(b"\n"))

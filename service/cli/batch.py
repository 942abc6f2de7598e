"""`callgrade batch`: batches of a running service, watched and fetched."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from service.cli.batch_outcomes import Fetch, Fetched, part_of
from service.cli.batch_progress import paused
from service.cli.batch_service import Service
from service.cli.console import plural, say
from service.cli.exits import ExitCode
from service.cli.jobs import ended
from service.io.client import Client, Kind
from service.io.store.batch import Batch


def watch(service: Service, batch_id: str) -> ExitCode:
    """Shows how a batch gets on until it has ended; the exit code says how."""
    with service.batches() as client:
        return watch_to_the_end(client, batch_id)


def fetch(
    service: Service, batch_id: str, kind: Kind, *, output: Path | None, offset: int | None, wait: bool
) -> ExitCode:
    """Fetches results or errors, as lines of JSON in the order of the items."""
    if output is not None and offset is not None:
        raise typer.BadParameter("a file goes on where it was left by itself", param_hint="--offset")
    with service.batches() as client:
        fetching = Fetch(client, batch_id, kind)
        if output is None:
            fetched = fetching.run(_printed, offset=offset or 0, wait=wait)
            if not fetched.complete:
                say(f"{_front(fetched)}; --offset {fetched.offset} goes on from there")
            return ExitCode.PASSED
        return _fetched_to(output, fetching, batch_id, kind, wait=wait)


def _fetched_to(output: Path, fetching: Fetch, batch_id: str, kind: Kind, *, wait: bool) -> ExitCode:
    with part_of(output, batch_id, kind) as (path, file, offset):
        fetched = fetching.run(file.write, offset=offset, wait=wait)
        file.flush()
        if fetched.complete:
            path.replace(output)
            return ExitCode.PASSED
    say(f"{_front(fetched)}; they are in {path}, and the same command goes on from there")
    return ExitCode.FAILED


def _front(fetched: Fetched) -> str:
    """Why not all is there."""
    if fetched.batch is not None:
        return f"{paused(fetched.batch)}; {fetched.offset} items are behind it"
    return f"the batch has not ended; the first {plural(fetched.offset, 'item')} are done"


def _printed(lines: bytes) -> None:
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


def watch_to_the_end(client: Client, batch_id: str) -> ExitCode:
    """Shows how a batch gets on; the exit code says how it ended. One that waits for a larger budget is not waited for."""
    batch = ended(client, batch_id, verb="scoring")
    if batch is None:
        return ExitCode.FAILED
    say(f"callgrade batch results {batch.id} fetches the reports" + _errors_too(batch))
    return ExitCode.PASSED if batch.status == "completed" else ExitCode.FAILED


def _errors_too(batch: Batch) -> str:
    return ", batch errors what has none" if batch.request_counts.completed < batch.request_counts.total else ""

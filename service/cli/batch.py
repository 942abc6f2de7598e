"""`callgrade batch`: batches of a running service, looked at, watched, fetched and ended."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import typer

from service.cli.batch_outcomes import Fetch, Fetched, part_of
from service.cli.batch_progress import Progression, paused
from service.cli.batch_service import Service
from service.cli.batch_table import ended_line, show_many, show_one
from service.cli.console import plural, say
from service.cli.exits import ExitCode
from service.io.client import Client, Kind, watched
from service.io.store.batch import BATCH, BATCH_LIST, Batch

TableOrJson = Literal["table", "json"]


def show_batches(
    service: Service, *, limit: int, after: str | None, status: str | None, output_format: TableOrJson = "table"
) -> ExitCode:
    """Shows the batches there are, newest first."""
    asked = {"limit": str(limit), "after": after, "status": status}
    with service.client() as client:
        found = client.page(**{name: value for name, value in asked.items() if value is not None})
    if output_format == "json":
        _print_json(BATCH_LIST.dump_json(found))
    else:
        show_many(found.data)
    if found.has_more and output_format == "table":
        say(f"there are more; --after {found.next} shows them")
    return ExitCode.PASSED


def show_batch(service: Service, batch_id: str, *, output_format: TableOrJson = "table") -> ExitCode:
    """Shows how one batch gets on."""
    with service.client() as client:
        return _shown(client.find(batch_id), output_format)


def cancel(service: Service, batch_id: str) -> ExitCode:
    """Lets a batch end."""
    with service.client() as client:
        return _shown(client.cancel(batch_id), "table")


def resume(service: Service, batch_id: str, *, budget_usd: float | None) -> ExitCode:
    """Goes on with a paused batch."""
    with service.client() as client:
        return _shown(client.resume(batch_id, budget_usd=budget_usd), "table")


def delete(service: Service, batch_id: str) -> ExitCode:
    """Deletes a batch that has ended, with its results."""
    with service.client() as client:
        client.delete(batch_id)
    say(f"{batch_id} is deleted, with its items and results")
    return ExitCode.PASSED


def watch(service: Service, batch_id: str) -> ExitCode:
    """Shows how a batch gets on until it has ended; the exit code says how."""
    with service.client() as client:
        return watch_to_the_end(client, batch_id)


def fetch(
    service: Service, batch_id: str, kind: Kind, *, output: Path | None, offset: int | None, wait: bool
) -> ExitCode:
    """Fetches results or errors, as lines of JSON in the order of the items."""
    if output is not None and offset is not None:
        raise typer.BadParameter("a file goes on where it was left by itself", param_hint="--offset")
    with service.client() as client:
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
    try:
        with Progression("scoring", lines=True) as progression:
            for batch in watched(client, batch_id):
                progression.show(batch)
                if batch.ended:
                    break
                if batch.status == "paused_budget":
                    say(f"callgrade batch resume {batch.id} --budget-usd X goes on with it")
                    return ExitCode.FAILED
            else:
                return ExitCode.INTERNAL  # a watch ends with an end, or raises
    except KeyboardInterrupt:
        say(f"the batch goes on; callgrade batch watch {batch_id} shows it again, batch cancel ends it")
        raise
    say(ended_line(batch))
    if batch.reason:
        say(f"because: {batch.reason}")
    say(f"callgrade batch results {batch.id} fetches the reports" + _errors_too(batch))
    return ExitCode.PASSED if batch.status == "completed" else ExitCode.FAILED


def _errors_too(batch: Batch) -> str:
    return ", batch errors what has none" if batch.request_counts.completed < batch.request_counts.total else ""


def _shown(batch: Batch, output_format: TableOrJson) -> ExitCode:
    if output_format == "json":
        _print_json(BATCH.dump_json(batch))
    else:
        show_one(batch)
    return ExitCode.PASSED


def _print_json(data: bytes) -> None:
    sys.stdout.buffer.write(data + b"\n")
    sys.stdout.buffer.flush()

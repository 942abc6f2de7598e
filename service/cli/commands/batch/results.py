"""`callgrade batch results`: the reports of a batch, as lines of JSON in the order of the items."""

from __future__ import annotations

from service.cli.command import command
from service.cli.remote.options import (
    LOCAL,
    JobArgument,
    KeyOption,
    LinesOption,
    OffsetOption,
    ServerOption,
    WaitOption,
)


@command(30)
def fetch_results(
    batch_id: JobArgument,
    output: LinesOption = None,
    offset: OffsetOption = None,
    wait: WaitOption = False,
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Fetch the reports of a batch as JSON Lines, in the order of its items, as far as it is.

    With --output the exit code is 2 while not all are there; the same command goes on where it stopped.
    """
    from service.cli.remote.outcomes import fetch
    from service.cli.remote.service import Service

    return fetch(Service(server, key), batch_id, "results", output=output, offset=offset, wait=wait)

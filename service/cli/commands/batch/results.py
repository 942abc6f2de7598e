"""`callgrade batch results`: fetch the reports of a batch, as JSON Lines in the order of the items."""

from __future__ import annotations

from service.cli.command import command
from service.cli.remote.options import (
    LOCAL_URL,
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
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Fetch the reports that a batch has so far, as JSON Lines in the order of its items.

    With --output the exit code is 2 until all reports are there; run the same command again to continue.
    """
    from service.cli.remote.outcomes import fetch
    from service.cli.remote.service import Service

    return fetch(Service(server, key), batch_id, "results", output=output, offset=offset, wait=wait)

"""`callgrade batch errors`: why items of a batch have no report, as lines of JSON in the order of the items."""

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


@command(40)
def fetch_errors(
    batch_id: JobArgument,
    output: LinesOption = None,
    offset: OffsetOption = None,
    wait: WaitOption = False,
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Fetch why items have no report, as `batch results` fetches reports. Every item is in one of the two."""
    from service.cli.remote.outcomes import fetch
    from service.cli.remote.service import Service

    return fetch(Service(server, key), batch_id, "errors", output=output, offset=offset, wait=wait)

"""`callgrade batch errors`: fetch why items of a batch have no report, as JSON Lines in the order of the items."""

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


@command(40)
def fetch_errors(
    batch_id: JobArgument,
    output: LinesOption = None,
    offset: OffsetOption = None,
    wait: WaitOption = False,
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Fetch why items have no report, as JSON Lines. Every item is either here or in `batch results`."""
    from service.cli.remote.outcomes import fetch
    from service.cli.remote.service import Service

    return fetch(Service(server, key), batch_id, "errors", output=output, offset=offset, wait=wait)

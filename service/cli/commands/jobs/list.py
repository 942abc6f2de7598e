"""`callgrade batch list` and `callgrade calibrate list`: list jobs, newest first."""

from __future__ import annotations

import typer

from service.cli.command import command
from service.cli.remote.options import (
    LOCAL_URL,
    AfterOption,
    JobFormatOption,
    KeyOption,
    LimitOption,
    ServerOption,
    StatusOption,
)


@command(
    50,
    batch="List batches, newest first.",
    calibrate="List calibrations, newest first.",
)
def list_command(
    context: typer.Context,
    status: StatusOption = None,
    limit: LimitOption = 20,
    after: AfterOption = None,
    output_format: JobFormatOption = "table",
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """List batches or calibrations, depending on the command's group."""
    from service.cli.remote.jobs import list_jobs
    from service.cli.remote.service import Service

    return list_jobs(
        Service(server, key).jobs(context), limit=limit, after=after, status=status, output_format=output_format
    )

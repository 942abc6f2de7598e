"""`callgrade batch list` and `callgrade calibrate list`: the newest first."""

from __future__ import annotations

import typer

from service.cli.command import command
from service.cli.remote.options import (
    LOCAL,
    AfterOption,
    KeyOption,
    LimitOption,
    ServerOption,
    ShownOption,
    StatusOption,
)


@command(
    50,
    batch="List batches, newest first.",
    calibrate="List the calibrations of a service, newest first.",
)
def list_command(
    context: typer.Context,
    status: StatusOption = None,
    limit: LimitOption = 20,
    after: AfterOption = None,
    output_format: ShownOption = "table",
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Of the kind of jobs that the group is about."""
    from service.cli.remote.jobs import list_jobs
    from service.cli.remote.service import Service

    return list_jobs(
        Service(server, key).jobs(context), limit=limit, after=after, status=status, output_format=output_format
    )

"""`callgrade batch cancel` and `callgrade calibrate cancel`: cancel a job."""

from __future__ import annotations

import typer

from service.cli.command import command
from service.cli.remote.options import LOCAL_URL, JobArgument, KeyOption, ServerOption


@command(
    70,
    batch="Cancel a batch. Items under way finish; the others never run.",
    calibrate="Cancel a calibration. Nothing is fitted.",
)
def cancel_command(
    context: typer.Context,
    name: JobArgument,
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Cancel a batch or a calibration, depending on the command's group."""
    from service.cli.remote.jobs import cancel
    from service.cli.remote.service import Service

    return cancel(Service(server, key).jobs(context), name)

"""`callgrade batch cancel` and `callgrade calibrate cancel`: one is let end."""

from __future__ import annotations

import typer

from service.cli.command import command
from service.cli.remote.options import LOCAL, JobArgument, KeyOption, ServerOption


@command(
    70,
    batch="Cancel a batch: items under way are finished, the others are never run.",
    calibrate="Cancel a calibration: nothing is fitted.",
)
def cancel_command(
    context: typer.Context,
    name: JobArgument,
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Of the kind of jobs that the group is about."""
    from service.cli.remote.jobs import cancel
    from service.cli.remote.service import Service

    return cancel(Service(server, key).jobs(context), name)

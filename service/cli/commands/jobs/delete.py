"""`callgrade batch delete` and `callgrade calibrate delete`: delete a job that has ended, with its results."""

from __future__ import annotations

import typer

from service.cli.command import command
from service.cli.remote.options import LOCAL_URL, JobArgument, KeyOption, ServerOption


@command(
    90,
    batch="Delete a batch that has ended, with its items and results.",
    calibrate="Delete a calibration that has ended, with its items, report and fits.",
)
def delete_command(
    context: typer.Context,
    name: JobArgument,
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Delete a batch or a calibration, depending on the command's group."""
    from service.cli.remote.jobs import delete
    from service.cli.remote.service import Service

    return delete(Service(server, key).jobs(context), name)

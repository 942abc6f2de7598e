"""`callgrade batch status` and `callgrade calibrate status`: show the state of a job."""

from __future__ import annotations

import typer

from service.cli.command import command
from service.cli.remote.options import LOCAL_URL, JobArgument, JobFormatOption, KeyOption, ServerOption


@command(
    60,
    batch="Show the state of a batch.",
    calibrate="Show the state of a calibration.",
)
def status_command(
    context: typer.Context,
    name: JobArgument,
    output_format: JobFormatOption = "table",
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Show a batch or a calibration, depending on the command's group."""
    from service.cli.remote.jobs import show_job
    from service.cli.remote.service import Service

    return show_job(Service(server, key).jobs(context), name, output_format=output_format)

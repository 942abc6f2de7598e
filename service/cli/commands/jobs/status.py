"""`callgrade batch status` and `callgrade calibrate status`: how one gets on."""

from __future__ import annotations

import typer

from service.cli.command import command
from service.cli.remote.options import LOCAL, JobArgument, KeyOption, ServerOption, ShownOption


@command(
    60,
    batch="Show how far a batch is.",
    calibrate="Show how far a calibration is.",
)
def status_command(
    context: typer.Context,
    name: JobArgument,
    output_format: ShownOption = "table",
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Of the kind of jobs that the group is about."""
    from service.cli.remote.jobs import show_job
    from service.cli.remote.service import Service

    return show_job(Service(server, key).jobs(context), name, output_format=output_format)

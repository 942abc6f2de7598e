"""`callgrade batch delete` and `callgrade calibrate delete`: one that has ended goes, with all that came of it."""

from __future__ import annotations

import typer

from service.cli.command import command
from service.cli.remote.options import LOCAL, JobArgument, KeyOption, ServerOption


@command(
    90,
    batch="Delete a batch that has ended, with its items and results.",
    calibrate="Delete a calibration that has ended, with its items, report and fits.",
)
def delete_command(
    context: typer.Context,
    name: JobArgument,
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Of the kind of jobs that the group is about."""
    from service.cli.remote.jobs import delete
    from service.cli.remote.service import Service

    return delete(Service(server, key).jobs(context), name)

"""`callgrade batch watch` and `callgrade calibrate watch`: how one gets on until it has ended."""

from __future__ import annotations

import typer

from service.cli.command import command
from service.cli.remote.options import LOCAL, JobArgument, KeyOption, ServerOption

BATCH = """Show how a batch gets on until it has ended. Interrupting this leaves the batch alone.

    Exit code 0 where it completed, whatever the verdicts (`callgrade summarize` makes a gate of results); 2 where it failed,
    expired, was cancelled, has items without a report, or waits for a larger budget; 4 where it waits for a judge that is not
    there.
    """

CALIBRATION = """Show how a calibration gets on until it has ended. Interrupting this leaves it alone.

    Exit code 0 where it completed; 2 where it failed, expired, was cancelled, or waits for a larger budget; 4 where it waits
    for a judge that is not there.
    """


@command(20, batch=BATCH, calibrate=CALIBRATION)
def watch_command(
    context: typer.Context,
    name: JobArgument,
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Of the kind of jobs that the group is about."""
    from service.cli.remote.jobs import watch
    from service.cli.remote.service import Service

    return watch(Service(server, key).jobs(context), name)

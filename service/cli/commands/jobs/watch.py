"""`callgrade batch watch` and `callgrade calibrate watch`: show the progress of a job until it ends."""

from __future__ import annotations

import typer

from service.cli.command import command
from service.cli.remote.options import LOCAL_URL, JobArgument, KeyOption, ServerOption

BATCH = """Show the progress of a batch until it ends. Ctrl-C stops watching, not the batch.

    Exit code 0 if it completed, whatever the verdicts (to gate on the results, use `callgrade summarize`); 2 if it failed,
    expired, was cancelled, has items without a report, or waits for a larger budget; 4 if it waits for a judge that is
    missing.
    """

CALIBRATION = """Show the progress of a calibration until it ends. Ctrl-C stops watching, not the calibration.

    Exit code 0 if it completed; 2 if it failed, expired, was cancelled, or waits for a larger budget; 4 if it waits for a
    judge that is missing.
    """


@command(20, batch=BATCH, calibrate=CALIBRATION)
def watch_command(
    context: typer.Context,
    name: JobArgument,
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Watch a batch or a calibration, depending on the command's group."""
    from service.cli.remote.jobs import watch
    from service.cli.remote.service import Service

    return watch(Service(server, key).jobs(context), name)

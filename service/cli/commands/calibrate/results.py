"""`callgrade calibrate results`: fetch the results of a calibration by a running service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.remote.options import LOCAL_URL, JobArgument, KeyOption, ServerOption, WaitOption

if TYPE_CHECKING:
    from service.calibration.results import CalibrationRun
    from service.cli.remote.service import Service


@command(30)
def calibrate_results(
    calibration_id: JobArgument,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write the report and the fits to.")],
    wait: WaitOption = False,
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Fetch the report and the fits of a completed calibration, in the form that `calibrate run` writes."""
    from service.cli.remote.service import Service

    return fetch(Service(server, key), calibration_id, out, wait=wait)


def fetch(service: Service, name: str, out: Path, *, wait: bool = False) -> ExitCode:
    """Write a completed calibration as `callgrade calibrate run` would."""
    from service.cli.calibrating.runs import write_run
    from service.cli.remote.jobs import watch_to_the_end

    with service.calibrations() as client:
        if wait and (code := watch_to_the_end(client, name)) != ExitCode.PASSED:
            return code
        run = _read_run(client.report(name), client.fits(name))
    write_run(run, out)
    return ExitCode.PASSED


def _read_run(report: bytes, fits: bytes) -> CalibrationRun:
    import json

    from pydantic import TypeAdapter, ValidationError
    from pydantic_core import to_json

    from service.calibration.results import CalibrationRun, read_report
    from service.client.failures import ForeignError
    from service.core.judging.fits import Fit

    form = TypeAdapter[Fit](Fit)
    try:
        files = json.loads(fits)["data"]
        return CalibrationRun(read_report(report), tuple([form.validate_json(to_json(file["fit"])) for file in files]))
    except (ValidationError, ValueError, LookupError, TypeError):
        raise ForeignError from None

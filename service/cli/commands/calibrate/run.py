"""`callgrade calibrate run`: fit recorded predictions to labels, and write the fits and a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.calibrating.options import (
    CascadeOption,
    GuaranteeOption,
    LabelsOption,
    MethodOption,
    PredictionsOption,
    SeedOption,
    check_cascade,
)
from service.cli.command import command
from service.cli.exits import ExitCode
from service.errors import InputError

if TYPE_CHECKING:
    from service.calibration.options import ReportOptions
    from service.cli.labelled import Sources


@command(1)
def calibrate_run(
    labels: LabelsOption,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write the report and the fits to.")],
    predictions: PredictionsOption = None,
    method: MethodOption = "auto",
    seed: SeedOption = None,
    guarantee: GuaranteeOption = None,
    cascade: CascadeOption = None,
    draws: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=100_000, help="Bootstrap draws for each interval; 0 for no intervals."),
    ] = 1_000,
) -> int:
    """Fit recorded predictions to human labels. The fits use all labels; the figures come from cross-fitting.

    Each label is scored once, by a fit that has not seen it. Writes report.json, report.md, report.html and fits/*.json. Run
    `callgrade calibrate install` to install the fits; each then calibrates its judge.
    """
    from service.calibration.figures import Resampling
    from service.calibration.options import ReportOptions
    from service.cli.labelled import Sources
    from service.fits.files import get_today

    options = ReportOptions(method=method, resampling=Resampling(draws=draws), made=get_today())
    options = options if seed is None else replace(options, seed=seed)
    check_cascade(cascade or (), guarantee)
    options = replace(options, guarantee=guarantee, cascade=tuple(cascade or ()))
    return run_calibration(Sources(labels, predictions or ()), out, options)


def run_calibration(sources: Sources, out: Path, options: ReportOptions | None = None) -> ExitCode:
    """Fit and measure, and write report.json, report.md, report.html and fits/*.json into `out`.

    InputError, with file and line, for labels or predictions that cannot be read. The same files give the same bytes.
    """
    from service.calibration.run import calibrate
    from service.cli.calibrating.runs import write_run
    from service.cli.labelled import read_in_file, read_labelled, read_prediction_files

    labelled = read_labelled(sources)
    predictions = read_prediction_files(sources.predictions) or labelled.predictions
    if not predictions:
        raise InputError.at(str(sources.labels), "no predictions; name a file that has them with --predictions")
    write_run(read_in_file(sources.labels, lambda: calibrate(labelled.labels, predictions, options)), out)
    return ExitCode.PASSED

"""Fit recorded predictions to human labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Option

from service.calibration.figures import Resampling
from service.calibration.options import ReportOptions
from service.calibration.run import calibrate
from service.cli.calibrating import Draws, Labels, naming_file, read_labelled, read_prediction_files, write_run
from service.cli.exits import ExitCode
from service.errors import InputError
from service.fits.files import get_today


def main(
    labels: Labels,
    out: Annotated[Path, Option(metavar="FOLDER", help="Folder to write the report and the fits to.")],
    predictions: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Predictions. [default: those with the labels]")
    ] = None,
    method: Annotated[
        Literal["auto", "identity", "platt", "isotonic"],
        Option(help="The map to fit; auto means Platt below 300 labels, else isotonic."),
    ] = "auto",
    guarantee: Annotated[
        float | None,
        Option(metavar="SHARE", min=0.5, max=0.999, help="Guarantee that this share of accepted verdicts agrees."),
    ] = None,
    draws: Draws = 1_000,
) -> int:
    """Fit recorded predictions to human labels. The fits use all labels; the figures come from cross-fitting.

    Each label is scored once, by a fit that has not seen it. Writes report.json, report.md, report.html and fits/*.json. Run
    `callgrade calibrate install` to install the fits; each then calibrates its judge.
    """
    chosen = ReportOptions(method=method, resampling=Resampling(draws), guarantee=guarantee, made=get_today())
    labelled = read_labelled(labels)
    predicted = read_prediction_files(predictions or ()) or labelled.predictions
    if not predicted:
        raise InputError.at(str(labels), "no predictions; name a file that has them with --predictions")
    with naming_file(labels):
        run = calibrate(labelled.labels, predicted, chosen)
    write_run(run, out)
    return ExitCode.PASSED

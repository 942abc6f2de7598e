"""`callgrade calibrate rate`: the pass rate of all that was judged, corrected by the labels of a part of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.calibrating.options import LabelsOption, PredictionsOption
from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import reading_console
from service.errors import InputError
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from service.calibration.rate import PassRate
    from service.cli.labelled import Sources
    from service.stats.corrected import InferredRate


@command(8)
def calibrate_rate(
    labels: LabelsOption,
    predictions: PredictionsOption = None,
    output_format: Annotated[
        Literal["table", "json"], typer.Option("--format", "-f", help="How it is written.")
    ] = "table",
) -> int:
    """Correct the pass rate of all that was judged by the labels of a part of it (PPI++)."""
    from service.cli.labelled import Sources

    return show_rates(Sources(labels, predictions or ()), output_format=output_format)


def show_rates(sources: Sources, *, output_format: Literal["table", "json"] = "table") -> ExitCode:
    """The pass rate of what was judged, corrected by the labels of a part of it, beside the labels' and the judge's own."""
    from rich.text import Text

    from service.calibration.rate import compute_pass_rates
    from service.calibration.results import render_json
    from service.cli.labelled import read_labelled, read_predicted

    found = read_labelled(sources)
    predictions = read_predicted(sources.predictions) or found.predictions
    rates = compute_pass_rates(found.labels, predictions)
    if not rates:
        raise InputError.at(str(sources.labels), "no predictions; name a file of them with --predictions")
    if output_format == "json":
        sys.stdout.write(render_json(rates).decode())
        return ExitCode.PASSED
    for rate in rates:
        for line in _describe_rate(rate):
            reading_console().print(Text(escape_unprintable(line)), soft_wrap=True)
    return ExitCode.PASSED


def _describe_rate(rate: PassRate) -> Iterator[str]:
    yield f"{rate.judge} on {rate.criterion}: {rate.labelled} labelled items, {rate.unlabelled} without a label"
    yield f"  corrected   {_interval(rate.corrected)}, the judge trusted with a weight of {rate.corrected.trust:.2f}"
    yield f"  labels only {_interval(rate.humans)}"
    yield f"  judge only  {rate.naive:.3f}, uncorrected"
    more = rate.corrected.more_labels
    yield f"  {'no number of' if more is None else more} more labels would halve the interval"
    yield f"  label next, at random: {', '.join(rate.label_next)}"


def _interval(found: InferredRate) -> str:
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"

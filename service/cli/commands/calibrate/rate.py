"""`callgrade calibrate rate`: correct a judge's pass rate with labels for part of the items."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.calibrating.options import LabelsOption, PredictionsOption
from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.rendering.console import build_reading_console
from service.errors import InputError
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from service.calibration.rate import LabelPlan, PassRate
    from service.cli.labelled import Sources
    from service.stats.corrected import InferredRate
    from service.stats.transport import MeanShift


@command(9)
def calibrate_rate(
    labels: LabelsOption,
    predictions: PredictionsOption = None,
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")] = "table",
) -> int:
    """Correct the pass rate over all judged items with the labels of some of them (PPI++)."""
    from service.cli.labelled import Sources

    return show_rates(Sources(labels, predictions or ()), output_format=output_format)


def show_rates(sources: Sources, *, output_format: Literal["table", "json"] = "table") -> ExitCode:
    """Print the corrected pass rate beside those of the labels alone and of the judge alone."""
    from rich.text import Text

    from service.calibration.rate import compute_pass_rates
    from service.calibration.results import render_json
    from service.cli.labelled import read_labelled, read_prediction_files

    found = read_labelled(sources)
    predictions = read_prediction_files(sources.predictions) or found.predictions
    rates = compute_pass_rates(found.labels, predictions)
    if not rates:
        raise InputError.at(str(sources.labels), "no predictions; name a file that has them with --predictions")
    if output_format == "json":
        sys.stdout.write(render_json(rates).decode())
        return ExitCode.PASSED
    for rate in rates:
        for line in _describe_rate(rate):
            build_reading_console().print(Text(escape_unprintable(line)), soft_wrap=True)
    return ExitCode.PASSED


def _describe_rate(rate: PassRate) -> Iterator[str]:
    yield f"{rate.judge} on {rate.criterion}: {rate.labelled} labelled items, {rate.unlabelled} without a label"
    yield f"  corrected   {_render_interval(rate.corrected)}, the judge trusted with a weight of {rate.corrected.trust:.2f}"
    yield f"  labels only {_render_interval(rate.humans)}"
    yield f"  judge only  {rate.naive:.3f}, uncorrected"
    more = rate.corrected.more_labels
    yield f"  {'no number of' if more is None else more} more labels would halve the interval"
    yield f"  label next, at random: {', '.join(rate.label_next)}"
    yield from _describe_shifts(rate)
    yield from _describe_plan(rate.plan)


MAX_DOUBTFUL_P = 0.05


def _describe_shifts(rate: PassRate) -> Iterator[str]:
    """Say whether the labelled items are comparable to the others, and earlier labels to the latest period."""
    sample, period = rate.sample_shift, rate.period_shift
    if sample is not None:
        verdict = (
            "the labels may not represent this traffic"
            if sample.p_value < MAX_DOUBTFUL_P
            else "no sign that the labels come from other traffic"
        )
        yield f"  the judge's value on unlabelled items is higher by {_render_shift(sample)}: {verdict}"
    if period is not None:
        doubt = period.shift.p_value < MAX_DOUBTFUL_P
        verdict = (
            f"earlier labels may not be valid for {period.latest}"
            if doubt
            else "no sign that earlier labels are no longer valid"
        )
        yield (
            f"  label minus judge is higher by {_render_shift(period.shift)} in {period.latest} ({period.labels} labels) "
            f"than before ({period.earlier}): {verdict}"
        )


def _render_shift(found: MeanShift) -> str:
    return f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}], p = {found.p_value:.2g}"


def _describe_plan(plan: LabelPlan) -> Iterator[str]:
    """List what to label next for the narrowest interval."""
    count = sum(map(len, plan.next))
    if plan.rate is not None:
        yield f"  stratified by the judge's value {plan.rate.value:.3f} [{plan.rate.low:.3f}, {plan.rate.high:.3f}]"
    yield (
        f"  or label next by stratum, {count} items, for a width of {plan.width:.3f} by strata "
        f"({plan.width_at_random:.3f} with as many at random):"
    )
    for one, chosen in zip(plan.strata, plan.next, strict=True):
        names = ": " + ", ".join(chosen) if chosen else ""
        yield f"    {one.low:.2f} to {one.high:.2f}, {one.labels} of {one.items} labelled, {len(chosen)} more{names}"


def _render_interval(found: InferredRate) -> str:
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"

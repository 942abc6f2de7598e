"""`callgrade plan`: show the questions for judges without asking them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.options import ExpectedOption, FilesArgument, FormatOption, PluginOption, RubricOption
from service.cli.rendering.refusals import RefusalPrinter
from service.errors import NO_JUDGE_MODEL, SettingsError

if TYPE_CHECKING:
    import asyncio

    from service.cli.inputs import Inputs, RecordRequest, Refusal
    from service.cli.rendering.plans import PlannedRecord, Totals


@command(30)
def plan(
    files: FilesArgument,
    rubric: RubricOption = None,
    expected: ExpectedOption = None,
    input_format: FormatOption = "auto",
    plugin: PluginOption = None,
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")] = "table",
    price: Annotated[
        bool,
        typer.Option("--price", help="Also show what the answers would cost at most with the configured judge model."),
    ] = False,
) -> int:
    """Show which questions judges would be asked about traces, without asking them."""
    from service.cli.inputs import read_inputs

    inputs = read_inputs(files, rubric=rubric, expected=expected, input_format=input_format, plugins=plugin or ())
    if price and inputs.engine.judging is None:
        raise SettingsError.at("CALLGRADE_JUDGE_MODEL", NO_JUDGE_MODEL)
    return run_plan(inputs, output_format=output_format, price=price)


def run_plan(inputs: Inputs, *, output_format: Literal["table", "json"] = "table", price: bool = False) -> ExitCode:
    """Print the plan of every record. Records without a plan are listed on standard error and make the exit code 5."""
    import asyncio

    from service.cli.rendering.plans import Totals, show_json, show_table

    totals = Totals(priced_model=inputs.settings.judge_model if price else None)
    show = show_json if output_format == "json" else show_table
    with asyncio.Runner() as loop:
        plans = _count_plans(inputs, totals)
        show((_add_price(one, inputs, totals, loop) for one in plans) if price else plans, totals)
        loop.run(inputs.engine.close())
    inputs.print_guesses()
    return ExitCode.DATA if totals.refused else ExitCode.PASSED


def _add_price(planned: PlannedRecord, inputs: Inputs, totals: Totals, loop: asyncio.Runner) -> PlannedRecord:
    judging = inputs.engine.judging
    if judging is not None:
        totals.add_estimates(loop.run(judging.estimate(planned.plan.asks, planned.plan.trace)).values())
    return planned


def _count_plans(inputs: Inputs, totals: Totals) -> Iterator[PlannedRecord]:
    from service.cli.inputs import Refusal

    printer = RefusalPrinter()
    for number, record in enumerate(inputs, start=1):
        planned = record if isinstance(record, Refusal) else _plan_one(record, number, inputs)
        if isinstance(planned, Refusal):
            totals.refused += 1
            printer.print(planned)
            continue
        totals.add(planned)
        yield planned


def _plan_one(record: RecordRequest, number: int, inputs: Inputs) -> PlannedRecord | Refusal:
    from service.cli.rendering.plans import PlannedRecord
    from service.errors import InputError

    try:
        return PlannedRecord(number, record.place, inputs.engine.plan(record.request))
    except InputError as error:
        return record.refuse(error)

"""`callgrade plan`: the questions for judges, without asking one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.options import ExpectedOption, Files, FormatOption, RubricOption
from service.cli.rendering.refusals import RefusalTeller
from service.errors import SettingsError

if TYPE_CHECKING:
    import asyncio

    from service.cli.inputs import InputChoices, Inputs, Refusal
    from service.cli.rendering.plans import PlannedRecord, Totals


@command(30)
def plan(
    files: Files,
    rubric: RubricOption = None,
    expected: ExpectedOption = None,
    input_format: FormatOption = "auto",
    output_format: Annotated[
        Literal["table", "json"], typer.Option("--format", "-f", help="How the plan is written.")
    ] = "table",
    price: Annotated[
        bool, typer.Option("--price", help="Also what the answers cost at most, by the judge model that is set up.")
    ] = False,
) -> int:
    """Show what a judge would be asked of traces, without asking."""
    from service.cli.inputs import read_inputs

    inputs = read_inputs(files, rubric=rubric, expected=expected, input_format=input_format)
    if price and inputs.engine.judging is None:
        message = "no judge model is set, so no answer has a price; expected its name, as in openai/gpt-5-mini"
        raise SettingsError.at("CALLGRADE_JUDGE_MODEL", message)
    return run_plan(inputs, output_format=output_format, price=price)


def run_plan(inputs: Inputs, *, output_format: Literal["table", "json"] = "table", price: bool = False) -> ExitCode:
    """Print the plan of every record; those that have none are told on standard error and make the exit code 5."""
    import asyncio

    from service.cli.rendering.plans import Totals, show_json, show_table

    totals = Totals(priced_model=inputs.settings.judge_model if price else None)
    show = show_json if output_format == "json" else show_table
    with asyncio.Runner() as loop:
        plans = _count_plans(inputs, totals)
        show((_add_price(one, inputs, totals, loop) for one in plans) if price else plans, totals)
        loop.run(inputs.engine.close())
    inputs.tell_guesses()
    return ExitCode.DATA if totals.refused else ExitCode.PASSED


def _add_price(planned: PlannedRecord, inputs: Inputs, totals: Totals, loop: asyncio.Runner) -> PlannedRecord:
    judging = inputs.engine.judging
    if judging is not None:
        totals.add_estimates(loop.run(judging.estimate(planned.plan.asks, planned.plan.trace)).values())
    return planned


def _count_plans(inputs: Inputs, totals: Totals) -> Iterator[PlannedRecord]:
    from service.cli.inputs import Refusal

    teller = RefusalTeller()
    for number, asked in enumerate(inputs, start=1):
        planned = asked if isinstance(asked, Refusal) else _plan_one(asked, number, inputs)
        if isinstance(planned, Refusal):
            totals.refused += 1
            teller.say(planned)
            continue
        totals.add(planned)
        yield planned


def _plan_one(asked: InputChoices, number: int, inputs: Inputs) -> PlannedRecord | Refusal:
    from service.cli.rendering.plans import PlannedRecord
    from service.errors import InputError

    try:
        return PlannedRecord(number, asked.place, inputs.engine.plan(asked.request))
    except InputError as error:
        return asked.refuse(error)

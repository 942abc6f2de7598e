"""`callgrade plan`, `convert` and `formats`: what judges would be asked about traces, and how traces are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Option

from service.cli import options
from service.cli.exits import ExitCode
from service.cli.screen import build_console, build_grid, pluralize, print_line, print_table, say
from service.core.money import NOTHING, Cost
from service.errors import NO_JUDGE_MODEL, SettingsError
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from service.cli.inputs import Inputs
    from service.core.judging.judges import Ask
    from service.core.plan import Plan

commands = typer.Typer()


@commands.command("plan")
def plan(
    files: options.Files,
    rubric: options.Rubric = None,
    expected: options.Expected = None,
    input_format: options.InputFormat = "auto",
    plugin: options.Plugin = None,
    price: Annotated[bool, Option("--price", help="Show what the answers would cost at most.")] = False,
) -> int:
    """Show which questions judges would be asked about traces, without asking them."""
    from service.cli.inputs import print_guesses, read_inputs
    from service.reading.places import Layout

    inputs = read_inputs(files, rubric=rubric, expected=expected, layout=Layout(input_format), plugins=plugin or ())
    if price and inputs.engine.judging is None:
        raise SettingsError.at("CALLGRADE_JUDGE_MODEL", NO_JUDGE_MODEL)
    totals = Totals(inputs.settings.judge_model if price else None)
    _show_table(_list_plans(inputs, totals), totals)
    if inputs.refused:
        print_line(f"not planned: {pluralize(len(inputs.refused), 'record')}")
    print_guesses(inputs.guessed, inputs.left_out)
    return ExitCode.DATA if inputs.refused else ExitCode.PASSED


@dataclass
class Totals:
    """The totals of a run of plans."""

    priced_model: str | None
    """The judge model whose price is shown; None if no price was requested."""
    traces: int = 0
    questions: int = 0
    blocked: int = 0
    tokens: int = 0
    """Tokens of prompts and replies, at most."""
    cost: Cost = NOTHING
    """The cost at most, if nothing were cached."""


def _list_plans(inputs: Inputs, totals: Totals) -> Iterator[tuple[str, Plan]]:
    """Yield the name and plan of every record and count it; list records without one on standard error."""
    import asyncio

    with asyncio.Runner() as loop:
        for _, made in inputs.work_on(inputs.engine.plan):
            totals.traces += 1
            totals.questions += len(made.asks)
            totals.blocked += len(made.blocked_asks)
            if totals.priced_model is not None and inputs.engine.judging is not None:
                for one in loop.run(inputs.engine.judging.estimate(made.asks, made.trace)).values():
                    totals.tokens += one.tokens
                    totals.cost += Cost.of(one.cost_usd)
            yield made.trace.id or f"#{totals.traces + len(inputs.refused)}", made
        loop.run(inputs.engine.close())


def _show_table(plans: Iterator[tuple[str, Plan]], totals: Totals) -> None:
    """Print plans as they come, then each judge once, then the totals."""
    from rich.padding import Padding
    from rich.text import Text

    out = build_console()
    judges: dict[str, str] = {}
    for name, made in plans:
        out.print(Text(escape_unprintable(f"{name} ({made.rubric.id})"), style="bold"))
        out.print(Padding(_build_table(made), (0, 0, 1, 2), expand=False))
        judges |= {one.judge.id: f"{one.judge.question} [{' | '.join(one.judge.scale)}]" for one in made.asks}
    for judge, question in judges.items():
        out.print(Text(f"{judge}: ", style="bold").append(escape_unprintable(question), style="not bold"))
    questions = f"{pluralize(totals.questions, 'question')} for a judge"
    out.print(f"{pluralize(totals.traces, 'trace')}: {questions}, {totals.blocked} blocked by a failed check")
    if totals.priced_model is not None:
        tokens = f"at most {totals.tokens:,} tokens of {totals.priced_model}, {totals.cost}"
        per_thousand = Cost(1_000 * totals.cost.usd / max(1, totals.traces))
        out.print(tokens if totals.cost.unpriced else f"{tokens}: {per_thousand} for 1,000 such traces")


def _build_table(made: Plan) -> Table | Text:
    from rich.text import Text

    asked = [(ask.criterion, _describe(ask, made), f"asks {ask.judge.id}") for ask in made.asks]
    blocked = [
        (ask.criterion, _describe(ask, made), Text(f"not asked: {why}", style="yellow"))
        for ask, why in made.blocked_asks
    ]
    nothing = Text("nothing to ask: code decides everything that applies", style="dim")
    return build_grid([*asked, *blocked]) if asked or blocked else nothing


def _describe(ask: Ask, made: Plan) -> str:
    if ask.step is not None:
        return f"step {ask.step + 1}, {made.trace.steps[ask.step].call.name}"[:40]
    return "the trace" if ask.turn is None else f"turn {ask.turn}"


# How traces are read.


@commands.command("convert")
def convert(
    files: options.Files,
    input_format: options.InputFormat = "auto",
    *,
    to: Annotated[Literal["callgrade", "atif"], typer.Option(help="Format to write.")] = "callgrade",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also list what is ignored.")] = False,
    encoding: options.Encoding = None,
    columns: options.Columns = None,
    tools: options.Tools = None,
) -> int:
    """Print traces as callgrade reads them. Parts that cannot be read are listed on standard error.

    Try this first when a score surprises you. Prints one JSON document per line.
    """
    from service.cli.inputs import print_guesses, read_inputs
    from service.intake.reading import find_second_guess
    from service.intake.writing import write_atif, write_record
    from service.reading.places import Layout
    from service.reading.request import read_request_trace

    inputs = read_inputs(files, layout=Layout(input_format, encoding, options.read_columns(columns))).offer(tools)
    for record, trace in inputs.work_on(read_request_trace):
        typer.echo(json.dumps(write_atif(trace) if to == "atif" else write_record(trace), ensure_ascii=False))
        for part in trace.unread:
            say(f"{record.place}: {part.path}: {part.reason}")
        if verbose and inputs.guessed[trace.format] and (second := find_second_guess(record.request.trace)):
            say(f"{record.place}: read as {trace.format}; the second best guess is {second}")
        for part in trace.ignored if verbose else ():
            say(f"{record.place}: ignored: {part.path}: {part.reason}")
    print_guesses(inputs.guessed, inputs.left_out)
    return ExitCode.DATA if inputs.refused else ExitCode.PASSED


@commands.command("formats")
def formats() -> int:
    """List the trace formats: what each is, and the fields by which a trace that names no format is recognized."""
    from service.intake.reading import list_formats

    rows = [(entry.name, entry.summary, entry.hint) for entry in list_formats()]
    print_table(("format", "what it is", "recognized by"), rows)
    return ExitCode.PASSED

"""Show what judges would be asked."""

from __future__ import annotations

import asyncio
from typing import Annotated

from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer import Option

from service.cli import options
from service.cli.exits import ExitCode
from service.cli.inputs import print_guesses, read_inputs
from service.cli.screen import build_console, build_grid, pluralize, print_line
from service.core.judging.judges import Ask
from service.core.money import NOTHING, Cost
from service.core.plan import Plan
from service.errors import NO_JUDGE_MODEL, SettingsError
from service.reading.places import Layout
from service.reporting.escaping import escape_unprintable


def main(
    files: options.Files,
    rubric: options.Rubric = None,
    expected: options.Expected = None,
    input_format: options.InputFormat = "auto",
    plugin: options.Plugin = None,
    price: Annotated[bool, Option("--price", help="Show what the answers would cost at most.")] = False,
) -> int:
    """Show which questions judges would be asked about traces, without asking them."""
    inputs = read_inputs(files, rubric=rubric, expected=expected, layout=Layout(input_format), plugins=plugin)
    judging = inputs.engine.judging if price else None
    if price and judging is None:
        raise SettingsError.at("CALLGRADE_JUDGE_MODEL", NO_JUDGE_MODEL)
    out = build_console()
    traces = questions = blocked = tokens = 0
    cost, judges = NOTHING, dict[str, str]()
    with asyncio.Runner() as loop:
        for _, made in inputs.work_on(inputs.engine.plan):
            traces += 1
            questions += len(made.asks)
            blocked += len(made.blocked_asks)
            judges |= {one.judge.id: f"{one.judge.question} [{' | '.join(one.judge.scale)}]" for one in made.asks}
            for one in loop.run(judging.estimate(made.asks, made.trace)).values() if judging else ():
                tokens, cost = tokens + one.tokens, cost + Cost.of(one.cost_usd)
            name = made.trace.id or f"#{traces + len(inputs.refused)}"
            out.print(Text(escape_unprintable(f"{name} ({made.rubric.id})"), style="bold"))
            out.print(Padding(_build_questions(made), (0, 0, 1, 2), expand=False))
        loop.run(inputs.engine.close())
    for judge, question in judges.items():
        out.print(Text(f"{judge}: ", style="bold").append(escape_unprintable(question), style="not bold"))
    asked = f"{pluralize(questions, 'question')} for a judge"
    out.print(f"{pluralize(traces, 'trace')}: {asked}, {blocked} blocked by a failed check")
    if price:
        each = "" if cost.unpriced else f": {Cost(1_000 * cost.usd / max(1, traces))} for 1,000 such traces"
        out.print(f"at most {tokens:,} tokens of {inputs.settings.judge_model}, {cost}{each}")
        out.print("Replies count as long as they may be; callgrade judge check measures how long they are.")
    if inputs.refused:
        print_line(f"not planned: {pluralize(len(inputs.refused), 'record')}")
    print_guesses(inputs.guessed, inputs.left_out)
    return ExitCode.DATA if inputs.refused else ExitCode.PASSED


def _build_questions(made: Plan) -> Table | Text:
    def describe(ask: Ask) -> str:
        if ask.step is not None:
            return f"step {ask.step + 1}, {made.trace.steps[ask.step].call.name}"[:40]
        return "the trace" if ask.turn is None else f"turn {ask.turn}"

    rows = [(ask.criterion, describe(ask), Text(f"asks {ask.judge.id}")) for ask in made.asks]
    rows += [(ask.criterion, describe(ask), Text(f"not asked: {why}", "yellow")) for ask, why in made.blocked_asks]
    return build_grid(rows) if rows else Text("nothing to ask: code decides everything that applies", style="dim")

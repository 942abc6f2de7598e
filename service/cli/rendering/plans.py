"""Render plans for a terminal and as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from service.asking.judging import AskEstimate
from service.cli.rendering.console import build_console, pluralize
from service.core.judging.judges import Ask, Judge
from service.core.money import NOTHING, Cost, format_usd
from service.core.plan import Plan
from service.reading.trace_files import RecordPlace
from service.reporting.escaping import escape_unprintable


@dataclass(frozen=True, slots=True)
class PlannedRecord:
    """A record and its plan."""

    number: int
    place: RecordPlace
    plan: Plan

    @property
    def name(self) -> str:
        """The trace id, else the record's number."""
        return self.plan.trace.id or f"#{self.number}"


@dataclass
class Totals:
    """The totals of a run of plans."""

    traces: int = 0
    questions: int = 0
    blocked: int = 0
    refused: int = 0
    priced_model: str | None = None
    """The judge model whose price is shown; None if no price was requested."""
    tokens: int = 0
    """Tokens of prompts and replies, at most."""
    cost: Cost = NOTHING
    """The cost at most, if nothing were cached."""

    def add(self, planned: PlannedRecord) -> None:
        """Count a record."""
        self.traces += 1
        self.questions += len(planned.plan.asks)
        self.blocked += len(planned.plan.blocked_asks)

    def add_estimates(self, estimates: Iterable[AskEstimate]) -> None:
        """Count the tokens and the cost that answers would take."""
        for one in estimates:
            self.tokens += one.tokens
            self.cost += Cost.of(one.cost_usd)

    def render(self) -> str:
        """Render the totals in words."""
        refused = f"\nnot planned: {pluralize(self.refused, 'record')}" if self.refused else ""
        questions = pluralize(self.questions, "question")
        counts = f"{pluralize(self.traces, 'trace')}: {questions} for a judge, {self.blocked} blocked by a failed check"
        price = "" if self.priced_model is None else f"\n{self.describe_price('traces')}"
        return f"{counts}{price}{refused}"

    def describe_price(self, things: str) -> str:
        """Render the cost at most, in words."""
        tokens = f"at most {self.tokens:,} tokens of {self.priced_model}, {self.cost}"
        if self.cost.unpriced:
            return tokens
        return f"{tokens}: {format_usd(1_000 * self.cost.usd / max(1, self.traces))} for 1,000 such {things}"


def show_table(plans: Iterator[PlannedRecord], totals: Totals) -> None:
    """Print plans as they come, then each judge once, then the totals."""
    out = build_console()
    judges: dict[str, Judge] = {}
    for planned in plans:
        out.print(Text(escape_unprintable(f"{planned.name} ({planned.plan.rubric.id})"), style="bold"))
        out.print(Padding(_build_table(planned.plan), (0, 0, 1, 2), expand=False))
        judges |= {ask.judge.id: ask.judge for ask in planned.plan.asks}
    for judge in judges.values():
        question = f"{judge.question} [{' | '.join(judge.scale)}]"
        out.print(Text(f"{judge.id}: ", style="bold").append(escape_unprintable(question), style="not bold"))
    out.print(Text(totals.render()))


def _build_table(plan: Plan) -> Table | Text:
    if not plan.asks and not plan.blocked_asks:
        return Text("nothing to ask: code decides everything that applies", style="dim")
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for ask in plan.asks:
        grid.add_row(Text(ask.criterion), Text(_describe(ask, plan)), Text(f"asks {ask.judge.id}"))
    for blocked in plan.blocked_asks:
        grid.add_row(
            Text(blocked.ask.criterion),
            Text(_describe(blocked.ask, plan)),
            Text(f"not asked: {blocked.why}", style="yellow"),
        )
    return grid


def _describe(ask: Ask, plan: Plan) -> str:
    if ask.step is not None:
        return escape_unprintable(f"step {ask.step}, {plan.trace.steps[ask.step].call.name}"[:40])
    return "the trace" if ask.turn is None else f"turn {ask.turn}"


def show_json(plans: Iterator[PlannedRecord], totals: Totals) -> None:
    """Print {"traces": [{"trace_id", "source", "line", "rubric", "asks", "blocked"}], "totals"}, one trace at a time."""
    write = sys.stdout.write
    head = '{"traces":['
    for planned in plans:
        write(head + _render_json(_build_object(planned)))
        head = ",\n"
    counts: dict[str, JsonValue] = {"traces": totals.traces, "questions": totals.questions, "blocked": totals.blocked}
    if totals.priced_model is not None:
        counts |= {"tokens": totals.tokens, "cost_usd": totals.cost.known_usd, "unpriced_calls": totals.cost.unpriced}
    start = '{"traces":[' if head.startswith("{") else ""
    write(f'{start}],\n"totals":{_render_json({**counts, "refused": totals.refused})}}}\n')


def _build_object(planned: PlannedRecord) -> dict[str, JsonValue]:
    plan = planned.plan
    return {
        "trace_id": plan.trace.id,
        "source": planned.place.source,
        "line": planned.place.line,
        "rubric": f"{plan.rubric.id}@{plan.rubric.version}",
        "asks": [
            {
                "criterion": ask.criterion,
                "judge": ask.judge.id,
                "step": ask.step,
                "turn": ask.turn,
                "tool": ask.tool,
                "question": ask.judge.question,
                "choices": list(ask.judge.scale),
            }
            for ask in plan.asks
        ],
        "blocked": [
            {"criterion": ask.criterion, "judge": ask.judge.id, "step": ask.step, "turn": ask.turn, "why": why}
            for ask, why in plan.blocked_asks
        ],
    }


def _render_json(value: JsonValue) -> str:
    """Render as ASCII, so that no terminal encoding can change it."""
    return json.dumps(value, separators=(",", ":"))

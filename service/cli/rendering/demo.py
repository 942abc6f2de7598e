"""Show the bundled cases: each conversation and how it scores."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, cast

from pydantic import JsonValue
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from service.cli.rendering.console import pluralize
from service.cli.rendering.steps import show_steps
from service.core.plan import Plan
from service.core.report import Report
from service.core.trace import Step
from service.engine import Engine
from service.reporting.escaping import escape_unprintable
from service.request import read_request

MAX_TEXT_CHARS = 400
"""How many characters of each text of a conversation are shown."""

INTRO = "A model that uses tools can go wrong at every stage. Each stage is scored on its own:"
VERDICT_RULE = (
    "A verdict is given only if no answer to an open question could change it; otherwise it is `undecided`. Most of these cases "
    "state what is expected and set `judges: off`, so that code alone decides; the last one does neither."
)
STAGES = (
    ("decide", "was a call needed at all?"),
    ("select", "was it the right tool?"),
    ("arguments", "do they match the tool's schema and the task?"),
    ("integrate", "does the answer report the result faithfully?"),
    ("sequence", "did the calls come in the expected order, if there is one?"),
)


@dataclass(frozen=True, slots=True)
class DemoCase:
    """One bundled case: its title and its score request."""

    title: str
    request: dict[str, JsonValue]


def list_demo_cases() -> list[DemoCase]:
    """List the bundled cases, in order."""
    text = (files("service") / "demo" / "cases.json").read_text("utf-8")
    return [DemoCase(**case) for case in cast("list[dict[str, Any]]", json.loads(text))]


def show_intro(console: Console) -> None:
    """Print the stages and when a verdict is given."""
    console.print(Text(INTRO))
    console.print(_build_pairs(STAGES))
    console.print(Text(VERDICT_RULE))


def show_case(
    console: Console, engine: Engine, number: int, case: DemoCase, loop: asyncio.Runner
) -> tuple[Plan, Report]:
    """Score a case and explain the result."""
    request = read_request(case.request if engine.judging is None else {**case.request, "judges": "live"})
    plan, report = engine.plan(request), loop.run(engine.answer_async(request))
    console.print()
    console.rule(Text(f"{number}. {case.title}", style="bold"), align="left", style="dim", characters="-")
    console.print(_build_conversation(plan))
    console.print()
    show_steps(console, report)
    return plan, report


def _build_conversation(plan: Plan) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for who, text in _list_turns(plan):
        grid.add_row(who, Text(_shorten(text)))
    return grid


def _list_turns(plan: Plan) -> Iterator[tuple[str, str]]:
    """List the conversation turn by turn: the user's messages, then the calls, then the answer."""
    trace = plan.trace
    for turn in range(trace.turns + 1):
        yield from (("user", m.text) for m in trace.messages if m.turn == turn and m.role == "user")
        for step in (step for step in trace.steps if step.turn == turn):
            yield "call", _render_call(step)
            if step.result is not None:
                yield "result", _render_text(step.result.content)
        yield from (("model", m.text) for m in trace.messages if m.turn == turn and m.role == "assistant" and m.text)


def _render_call(step: Step) -> str:
    if step.call.arguments is None:
        return f"{step.call.name}({_render_text(step.call.raw)})"
    return (
        f"{step.call.name}({', '.join(f'{name}={_render_json(value)}' for name, value in step.call.arguments.items())})"
    )


def _render_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else _render_json(value)


def _render_json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shorten(text: str) -> str:
    shown = escape_unprintable(text)
    return shown if len(shown) <= MAX_TEXT_CHARS else f"{shown[:MAX_TEXT_CHARS]}…"


def show_questions(console: Console, plans: list[Plan]) -> None:
    """Print each question that a judge would have been asked, once."""
    asks = [ask for plan in plans for ask in plan.asks]
    counts = Counter((ask.criterion, ask.judge.question, " | ".join(ask.judge.scale)) for ask in asks)
    if not counts:
        return
    console.print(
        Text(
            "What code cannot decide is left to a judge, which is a language model. None was asked here; it would answer:"
        )
    )
    for (criterion, question, choices), count in counts.items():
        text = f"{criterion} ({pluralize(count, 'time')}): {question} [{choices}]"
        console.print(Padding(Text(escape_unprintable(text)), (0, 0, 0, 2)))


def show_judging(console: Console, reports: list[Report]) -> None:
    """Print which models judged, and how many replies they gave."""
    judged = [report.provenance for report in reports if report.provenance.replies]
    models = ", ".join(sorted({one.judge_model for one in judged if one.judge_model}))
    text = f"Judged by {models or 'nobody'}: {pluralize(sum(one.replies for one in judged), 'reply', 'replies')}."
    if any(one.stand_in for one in judged):
        text += " This is not a model but a stand-in: rules that know only these cases. Set CALLGRADE_JUDGE_MODEL to use a model."
    console.print(Text(text))


def show_ending(console: Console, reports: list[Report]) -> None:
    """Print the totals, and what to do next."""
    verdicts = Counter(report.verdict for report in reports)
    failed = Counter(report.first_failing_stage for report in reports if report.first_failing_stage)
    console.print(
        Text(
            f"{pluralize(len(reports), 'case')}: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}."
            f" Failed at: {', '.join(f'{stage} {count}' for stage, count in failed.items()) or 'none'}."
        )
    )
    console.print(Text("\nNext", style="bold"))
    console.print(_build_pairs(NEXT))


def _build_pairs(pairs: Iterable[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold", style="dim")
    for name, meaning in pairs:
        grid.add_row(Text(f"  {name}"), Text(meaning))
    return grid


NEXT = (
    ("callgrade demo --save cases.jsonl", "save these cases to a file, to look at and to change"),
    (
        "callgrade score cases.jsonl",
        "score a file: these cases, or your own traces, as in OpenAI's or Anthropic's format",
    ),
    ("callgrade plan cases.jsonl", "show what a judge would be asked"),
    ("callgrade demo --judge", "run this demo with a judge, or with a stand-in if none is configured"),
    ("callgrade serve", "score over HTTP: POST /v1/score"),
)

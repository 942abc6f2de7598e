"""The bundled cases: their conversations, and what came of them."""

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

from service.cli.rendering.console import plural
from service.cli.rendering.steps import show_steps
from service.core.plan import Plan
from service.core.report import Report
from service.core.trace import Step
from service.engine import Engine
from service.reporting.escaping import escape_unprintable
from service.request import read_request

LONGEST = 400
"""Characters of one text of a conversation that are shown."""

INTRO = "A model that uses tools can go wrong at every step of the contract. Each is scored on its own:"
GREEN = (
    "A verdict is given only where no answer to an open question could change it; else it is `abstain`. Most of these cases say "
    "what was expected and `judges: off`, so that code alone decides; the last one says neither."
)
STEPS = (
    ("decide", "was a call due at all?"),
    ("select", "was it the right tool?"),
    ("arguments", "are they what the tool's schema and the task ask for?"),
    ("integrate", "does the answer retell the result truly?"),
    ("sequence", "did the calls come in the order expected, where one is?"),
)


@dataclass(frozen=True, slots=True)
class DemoCase:
    """One bundled case: what it shows, and the score request."""

    title: str
    request: dict[str, JsonValue]


def demo_cases() -> list[DemoCase]:
    """The bundled cases, in order."""
    text = (files("service") / "demo" / "cases.json").read_text("utf-8")
    return [DemoCase(**case) for case in cast("list[dict[str, Any]]", json.loads(text))]


def show_intro(console: Console) -> None:
    """What a contract of tool use is made of."""
    console.print(Text(INTRO))
    console.print(_build_pairs(STEPS))
    console.print(Text(GREEN))


def show_case(
    console: Console, engine: Engine, number: int, case: DemoCase, loop: asyncio.Runner
) -> tuple[Plan, Report]:
    """Scores a case and explains it."""
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
    """The conversation in the order of its turns: what the user said, then the calls, then the answer."""
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
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def show_questions(console: Console, plans: list[Plan]) -> None:
    """What a judge would have been asked, each question once."""
    asks = [ask for plan in plans for ask in plan.asks]
    counted = Counter((ask.criterion, ask.judge.question, " | ".join(ask.judge.scale)) for ask in asks)
    if not counted:
        return
    console.print(
        Text("What code cannot decide is left to a judge, a model that is asked. None was asked here; it would answer:")
    )
    for (criterion, question, choices), count in counted.items():
        text = f"{criterion} ({plural(count, 'time')}): {question} [{choices}]"
        console.print(Padding(Text(escape_unprintable(text)), (0, 0, 0, 2)))


def show_judging(console: Console, reports: list[Report]) -> None:
    """Who judged, and what it came to."""
    made = [report.provenance for report in reports if report.provenance.replies]
    models = ", ".join(sorted({one.judge_model for one in made if one.judge_model}))
    told = f"Judged by {models or 'nobody'}: {plural(sum(one.replies for one in made), 'reply', 'replies')}."
    if any(one.stand_in for one in made):
        told += " That is no model but a stand-in: rules that know these cases and nothing else. CALLGRADE_JUDGE_MODEL sets one."
    console.print(Text(told))


def show_ending(console: Console, reports: list[Report]) -> None:
    """What it came to, and what to do next."""
    verdicts = Counter(report.verdict for report in reports)
    broke = Counter(report.first_failing_stage for report in reports if report.first_failing_stage)
    console.print(
        Text(
            f"{plural(len(reports), 'case')}: {', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}."
            f" Broken at: {', '.join(f'{stage} {count}' for stage, count in broke.items()) or 'no step'}."
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
    ("callgrade demo --save cases.jsonl", "these cases as a file, to look at and to change"),
    ("callgrade score cases.jsonl", "score a file: these, or your own traces in OpenAI's or Anthropic's form"),
    ("callgrade plan cases.jsonl", "what a judge would be asked"),
    ("callgrade demo --judge", "the same with a judge; without a key a stand-in plays it"),
    ("callgrade serve", "the same over HTTP: POST /v1/score"),
)

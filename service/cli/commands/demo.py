"""Score and explain the bundled cases."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import JsonValue
from rich.text import Text
from typer import Option

from service.cli.options import read_settings, writing
from service.cli.screen import build_console, build_grid, pluralize, say
from service.cli.views import cut, render_call, render_content, show_steps
from service.core.plan import Plan
from service.core.report import Report
from service.engine import Engine
from service.reading.request import read_request
from service.wiring import build_demo_judging, build_engine

STAGES = (
    ("decide", "was a call needed at all?"),
    ("select", "was it the right tool?"),
    ("arguments", "do they match the tool's schema and the task?"),
    ("integrate", "does the answer report the result faithfully?"),
    ("sequence", "did the calls come in the expected order, if there is one?"),
)
VERDICT_RULE = (
    "A verdict is given only if no answer to an open question could change it; otherwise it is `undecided`. Most of these cases "
    "state what is expected and set `judges: off`, so that code alone decides; the last one does neither."
)
NEXT = (
    ("callgrade demo --save cases.jsonl", "save these cases to a file, to look at and to change"),
    ("callgrade score cases.jsonl", "score a file: these cases, or your traces, as in OpenAI's or Anthropic's format"),
    ("callgrade plan cases.jsonl", "show what a judge would be asked"),
    ("callgrade demo --judge", "run this demo with a judge, or with a stand-in if none is configured"),
    ("callgrade serve", "score over HTTP: POST /v1/score"),
)


class DemoCase(NamedTuple):
    """One bundled case: its title and its score request."""

    title: str
    request: dict[str, JsonValue]


def list_demo_cases() -> list[DemoCase]:
    """List the bundled cases, in order."""
    cases: list[dict[str, Any]] = json.loads((files("service") / "demo" / "cases.json").read_text("utf-8"))
    return [DemoCase(**case) for case in cases]


def main(
    save: Annotated[Path | None, Option("--save", metavar="FILE", help="Write the cases as JSON Lines.")] = None,
    judge: Annotated[bool, Option("--judge", help="Ask the configured judge, or else a stand-in.")] = False,
) -> None:
    """Score the bundled cases and show, stage by stage, what failed. Needs no key and no network.

    The exit code is 0 even though cases fail, because they are meant to.
    """
    cases = list_demo_cases()
    if save is not None:  # an existing file is left alone
        with writing(save, "--save"), save.open("x", encoding="utf-8") as file:
            file.writelines(json.dumps(case.request, ensure_ascii=False) + "\n" for case in cases)
        say(f"{pluralize(len(cases), 'request')} written; next: callgrade score {save}")
        return
    engine = build_engine(read_settings())
    engine = Engine(engine.registry, judging=(engine.judging or build_demo_judging()) if judge else None)
    console = build_console(reading=True)
    console.print(Text("A model that uses tools can go wrong at every stage. Each stage is scored on its own:"))
    console.print(build_grid([(f"  {name}", Text(text, "dim")) for name, text in STAGES]))
    console.print(Text(VERDICT_RULE))
    reports: list[Report] = []
    with asyncio.Runner() as loop:
        for number, case in enumerate(cases, start=1):
            request = read_request({**case.request, "judges": "live"} if judge else case.request)
            plan = engine.plan(request)
            reports.append(loop.run(engine.answer_async(request)))
            console.print()
            console.rule(Text(f"{number}. {case.title}", style="bold"), align="left", style="dim", characters="-")
            console.print(build_grid([(Text(who, "dim"), cut(text)) for who, text in _list_turns(plan)]))
            console.print()
            show_steps(console, reports[-1])
        loop.run(engine.close())
    console.print()
    if judge:
        console.print(_describe_judging(reports) + "\n")
    verdicts = Counter(report.verdict for report in reports)
    failed = Counter(report.first_failing_stage for report in reports if report.first_failing_stage)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    stages = ", ".join(f"{stage} {count}" for stage, count in failed.items()) or "none"
    console.print(Text(f"{pluralize(len(reports), 'case')}: {counts}. Failed at: {stages}."))
    console.print(Text("\nNext", style="bold"))
    console.print(build_grid([(f"  {name}", Text(text, "dim")) for name, text in NEXT]))


def _list_turns(plan: Plan) -> Iterator[tuple[str, str]]:
    """List the conversation turn by turn: the user's messages, then the calls, then the answer."""
    trace = plan.trace
    for turn in range(trace.turns + 1):
        yield from (("user", m.text) for m in trace.messages if m.turn == turn and m.role == "user")
        for step in (step for step in trace.steps if step.turn == turn):
            yield "call", render_call(step)
            if step.result is not None:
                yield "result", render_content(step.result.content)
        yield from (("model", m.text) for m in trace.messages if m.turn == turn and m.role == "assistant" and m.text)


def _describe_judging(reports: list[Report]) -> str:
    """Say which models judged, and how many replies they gave."""
    judged = [report.provenance for report in reports if report.provenance.replies]
    models = ", ".join(sorted({one.judge_model for one in judged if one.judge_model}))
    text = f"Judged by {models or 'no model'}: {pluralize(sum(one.replies for one in judged), 'reply', 'replies')}."
    if any(one.stand_in for one in judged):
        text += " This is not a model but a stand-in: rules that know only these cases. Set CALLGRADE_JUDGE_MODEL to use a model."
    return text

"""`callgrade demo`: the bundled cases, scored and explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import plural, reading_console, say


@command(10)
def demo(
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write the cases as JSON Lines for `callgrade score`.")
    ] = None,
    judge: Annotated[
        bool,
        typer.Option("--judge", help="Ask a judge what code leaves open: the one that is set up, else a stand-in."),
    ] = False,
) -> int:
    """Score the bundled cases and show, step by step, what broke. Needs no key and no network."""
    return run_demo(judge=judge) if save is None else save_demo(save)


def run_demo(*, judge: bool = False) -> ExitCode:
    """Score every case and explain it. That cases fail is their point: the exit code is 0.

    `judge`: a judge is asked what code leaves open, the one that is set up or else the stand-in.
    """
    import asyncio

    from service.cli.rendering.demo import demo_cases, show_case, show_ending, show_intro, show_judging, show_questions
    from service.engine import Engine
    from service.wiring import build_demo_judging, build_engine

    settings = read_settings()
    engine = build_engine(settings)
    engine = Engine(engine.registry, judging=(engine.judging or build_demo_judging()) if judge else None)
    console = reading_console()
    show_intro(console)
    with asyncio.Runner() as loop:
        shown = [show_case(console, engine, number, case, loop) for number, case in enumerate(demo_cases(), start=1)]
        loop.run(engine.close())
    console.print()
    reports = [report for _, report in shown]
    if engine.judging is None:
        show_questions(console, [plan for plan, _ in shown])
    else:
        show_judging(console, reports)
    console.print()
    show_ending(console, reports)
    return ExitCode.PASSED


def save_demo(path: Path) -> ExitCode:
    """Write the requests of the cases as JSON Lines. A file that exists is left alone: a usage error."""
    import json

    from service.cli.rendering.demo import demo_cases

    lines = [json.dumps(case.request, ensure_ascii=False) + "\n" for case in demo_cases()]
    try:
        with path.open("x", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--save") from None
    say(f"{plural(len(lines), 'request')} written; next: callgrade score {path}")
    return ExitCode.PASSED

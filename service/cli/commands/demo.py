"""`callgrade demo`: score and explain the bundled cases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import build_reading_console, pluralize, say


@command(10)
def demo(
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write the cases as JSON Lines for `callgrade score`.")
    ] = None,
    judge: Annotated[
        bool,
        typer.Option("--judge", help="Ask a judge what code leaves open: the configured one, else a stand-in."),
    ] = False,
) -> int:
    """Score the bundled cases and show, step by step, what broke. Needs no key and no network."""
    return run_demo(judge=judge) if save is None else save_demo(save)


def run_demo(*, judge: bool = False) -> ExitCode:
    """Score and explain every case. The exit code is 0 even though cases fail, because they are meant to.

    `judge`: ask the configured judge, or else the stand-in, what code leaves open.
    """
    import asyncio

    from service.cli.rendering.demo import (
        list_demo_cases,
        show_case,
        show_ending,
        show_intro,
        show_judging,
        show_questions,
    )
    from service.engine import Engine
    from service.wiring import build_demo_judging, build_engine

    settings = read_settings()
    engine = build_engine(settings)
    engine = Engine(engine.registry, judging=(engine.judging or build_demo_judging()) if judge else None)
    console = build_reading_console()
    show_intro(console)
    with asyncio.Runner() as loop:
        results = [
            show_case(console, engine, number, case, loop) for number, case in enumerate(list_demo_cases(), start=1)
        ]
        loop.run(engine.close())
    console.print()
    reports = [report for _, report in results]
    if engine.judging is None:
        show_questions(console, [plan for plan, _ in results])
    else:
        show_judging(console, reports)
    console.print()
    show_ending(console, reports)
    return ExitCode.PASSED


def save_demo(path: Path) -> ExitCode:
    """Write the cases' requests as JSON Lines. An existing file is left alone and is a usage error."""
    import json

    from service.cli.rendering.demo import list_demo_cases

    lines = [json.dumps(case.request, ensure_ascii=False) + "\n" for case in list_demo_cases()]
    try:
        with path.open("x", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--save") from None
    say(f"{pluralize(len(lines), 'request')} written; next: callgrade score {path}")
    return ExitCode.PASSED

"""Have judges answer the labelled items."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Literal

from typer import Option

from service.calibration.predictions import Prediction
from service.calibration.report_predictions import UnansweredItem
from service.cli import options
from service.cli.calibrating import (
    JudgedRubric,
    Labels,
    build_judging_engine,
    collect_answers,
    naming_file,
    read_labelled,
)
from service.cli.exits import ExitCode
from service.cli.options import writing
from service.cli.screen import pluralize, say
from service.core.conclusion.judge_answers import NO_JUDGE
from service.labelling.predictions import AskSettings
from service.own_checks import load_plugin

MAX_NAMED = 5
"""How many items are named of those that were not judged for the same reason."""


def main(
    labels: Labels,
    out: Annotated[Path, Option(metavar="FILE", help="File to write the predictions to, as JSON Lines.")],
    rubric: JudgedRubric = "four_step",
    judges: Annotated[
        Literal["cached", "live", "fresh"], Option(help="How to ask judges; fresh ignores cached answers.")
    ] = "live",
    repeats: Annotated[
        int, Option(metavar="K", min=1, max=100, help="Answers per question; several measure its noise.")
    ] = 1,
    plugin: options.Plugin = None,
    quiet: options.Quiet = False,
) -> int:
    """Have judges answer the labelled items, and write the predictions that `calibrate run` fits.

    You can stop it at any time: run it again, and it asks only for what is missing from the cache.
    """
    for file in plugin or ():
        load_plugin(file)
    engine, model = build_judging_engine()
    items = read_labelled(labels).labels.items
    asking = AskSettings(engine.registry.find(rubric), judges, repeats)
    draft = out.with_name(f"{out.name}.part")
    try:
        with writing(out, "--out"), draft.open("wb") as file, naming_file(labels):
            answers = asyncio.run(collect_answers(engine, items, asking, model.model, quiet=quiet))
            found = sorted([one for one in answers if isinstance(one, Prediction)], key=lambda one: one.answer_id)
            file.writelines(one.model_dump_json().encode() + b"\n" for one in found)
        draft.replace(out)
    except KeyboardInterrupt:
        say("stopped; the cache has what was answered: run the same command again to continue")
        raise
    finally:
        draft.unlink(missing_ok=True)
    unanswered = [one for one in answers if isinstance(one, UnansweredItem)]
    judgeless = [one for one in unanswered if one.reason == NO_JUDGE]
    missing = [one for one in unanswered if not one.nothing_to_ask and one not in judgeless]
    for reason in dict.fromkeys(one.reason for one in missing):
        names = list(dict.fromkeys(one.answer_id.id for one in missing if one.reason == reason))
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        say(f"not judged: {', '.join(names[:MAX_NAMED])}{more}: {reason}")
    if bare := sum(one.trace is None and one.answer is None for one in items):
        say(
            f"{pluralize(bare, 'item')} with neither trace nor answer: `callgrade calibrate import --traces FILE` adds traces"
        )
    if judgeless:
        say(f"{pluralize(len(judgeless), 'item')} not asked about: no judge is set up for their criteria")
    if decided := len(unanswered) - len(missing) - len(judgeless):
        say(f"{pluralize(decided, 'item')} not asked about: code decides them, or they contain no call")
    say(f"wrote {pluralize(len(found), 'prediction')} to {out}")
    return ExitCode.DATA if missing else ExitCode.PASSED

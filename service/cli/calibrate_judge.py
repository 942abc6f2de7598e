"""`callgrade calibrate judge`: the judges of a rubric answer labelled items, and can be stopped at any time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import typer

from service.calibrating.labels import LabelledItem
from service.cli.console import plural, printable, say
from service.cli.context import read_settings
from service.cli.exits import NO_JUDGE, ExitCode
from service.cli.labelled import Sources, in_file, read_labelled
from service.core.report import JudgeMode
from service.errors import SettingsError
from service.io.bootstrap import engine_of
from service.io.engine import Engine
from service.io.judging import Judges
from service.io.predicted import Predicted, begun_with, predicted
from service.io.predicting import Asking, Unanswered, predictions_of


@dataclass(slots=True)
class _Count:
    made: int = 0
    missing: int = 0


def judge_labels(
    labels: Path, out: Path, *, rubric: str = "four_step", judges: JudgeMode = "live", repeats: int = 1
) -> ExitCode:
    """Have the judges of a rubric answer the labelled items, and write each prediction as soon as it is there.

    A second start with the same `out` asks only for what is not there. Items that no judge answered are told and left out:
    the exit code is then 5, and a second start asks for them again.
    """
    engine, model = judging_engine()
    items, asking = (
        read_labelled(Sources(labels)).labels.items,
        Asking(engine.shelf.find(rubric), judges, repeats),
    )
    begun = begun_with(items, asking.rubric, model=model.model, api_base=model.api_base)
    count = _Count()
    try:
        with predicted(out, begun) as file:
            _tell_known(file, out)
            with in_file(labels):
                asyncio.run(_written(engine, items, asking, file, count, model.model))
    except OSError as error:
        raise typer.BadParameter(f"{out}: {error.strerror}", param_hint="--out") from None
    except KeyboardInterrupt:
        say(f"stopped; {plural(count.made, 'prediction')} more in {out}, and the same command goes on from there")
        raise
    say(f"wrote {plural(count.made, 'prediction')} to {out}")
    return ExitCode.DATA if count.missing else ExitCode.PASSED


def judging_engine() -> tuple[Engine, Judges]:
    """The engine of the settings with its judges; SettingsError where no model is set."""
    engine = engine_of(read_settings())
    if engine.judging is None:
        raise SettingsError.at("CALLGRADE_JUDGE_MODEL", "expected a model: none is set")
    return engine, engine.judging.judges


def _tell_known(file: Predicted, out: Path) -> None:
    if file.known:
        say(f"going on: {plural(len(file.known), 'prediction')} in {out} already")


async def _written(
    engine: Engine, items: Iterable[LabelledItem], asking: Asking, file: Predicted, count: _Count, model: str
) -> None:
    done = frozenset(one.said for one in file.known)
    try:
        async for one in predictions_of(engine, items, asking, done=done):
            if isinstance(one, Unanswered) and one.nobody is not None and not count.made:
                message = f"the judge {model} answered nothing: {NO_JUDGE[one.nobody]}; the same command goes on"
                raise SettingsError.at("CALLGRADE_JUDGE_MODEL", message)
            if isinstance(one, Unanswered):
                count.missing += 1
                say(f"not judged: {printable(str(one))}")
                continue
            file.add(one)
            count.made += 1
    finally:
        await engine.close()

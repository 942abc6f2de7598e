"""`callgrade calibrate judge`: the judges of a rubric answer labelled items, and can be stopped at any time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.calibrating.options import LabelsOption
from service.cli.command import command
from service.cli.exits import NO_JUDGE, ExitCode
from service.cli.rendering.console import plural, say
from service.errors import SettingsError
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from service.calibration.labels import LabelledItem
    from service.calibration.prediction_files import PredictionFile
    from service.core.report import JudgeMode
    from service.engine import Engine
    from service.jobs.predicting import Asking


@command(2)
def calibrate_judge(
    labels: LabelsOption,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where the predictions are written, as JSON Lines.")
    ] = None,
    rubric: Annotated[str, typer.Option("--rubric", "-r", metavar="ID", help="Whose judges are asked.")] = "four_step",
    judges: Annotated[
        Literal["cached", "live", "fresh"], typer.Option(help="How they are asked; fresh asks again what is cached.")
    ] = "live",
    repeats: Annotated[
        int,
        typer.Option(metavar="K", min=1, max=100, help="Answers to each question: how far a judge is its own noise."),
    ] = 1,
    price: Annotated[
        bool, typer.Option("--price", help="Ask nobody, and tell what it would cost at most, were nothing cached.")
    ] = False,
) -> int:
    """Have judges answer the labelled items: the predictions that `calibrate run` fits.

    It may be stopped at any time: started again with the same --out, it asks only for what is not there.
    """
    if price:
        return price_labels(labels, rubric=rubric, repeats=repeats)
    if out is None:
        raise typer.BadParameter("name the file for the predictions, or ask for the --price alone", param_hint="--out")
    return judge_labels(labels, out, rubric=rubric, judges=judges, repeats=repeats)


def price_labels(labels: Path, *, rubric: str = "four_step", repeats: int = 1) -> ExitCode:
    """Tell what it would cost at most to have the judges of a rubric answer the labelled items. Nobody is asked."""
    import asyncio

    from service.cli.calibrating.judging import build_judging_engine
    from service.cli.labelled import Sources, name_file, read_labelled
    from service.cli.rendering.plans import Totals
    from service.jobs.predicting import Asking, estimate_predictions

    engine, model = build_judging_engine()
    items = read_labelled(Sources(labels)).labels.items
    asking, totals = Asking(engine.registry.find(rubric), repeats=repeats), Totals(len(items), priced_model=model.model)

    async def add_all() -> None:
        try:
            async for estimates in estimate_predictions(engine, items, asking):
                totals.questions += len(estimates)
                totals.add_estimates(estimates)
        finally:
            await engine.close()

    with name_file(labels):
        asyncio.run(add_all())
    typer.echo(f"{plural(totals.traces, 'item')}: {plural(totals.questions, 'question')} for a judge")
    typer.echo(totals.describe_price("items"))
    return ExitCode.PASSED


@dataclass(slots=True)
class _Count:
    made: int = 0
    missing: int = 0
    decided: int = 0


def judge_labels(
    labels: Path, out: Path, *, rubric: str = "four_step", judges: JudgeMode = "live", repeats: int = 1
) -> ExitCode:
    """Have the judges of a rubric answer the labelled items, and write each prediction as soon as it is there.

    A second start with the same `out` asks only for what is not there. Items that no judge answered are told and left out:
    the exit code is then 5, and a second start asks for them again.
    """
    from service.calibration.prediction_files import build_basis, open_predictions
    from service.cli.calibrating.judging import build_judging_engine
    from service.cli.interrupts import complete
    from service.cli.labelled import Sources, name_file, read_labelled
    from service.jobs.predicting import Asking

    engine, model = build_judging_engine()
    items, asking = (
        read_labelled(Sources(labels)).labels.items,
        Asking(engine.registry.find(rubric), judges, repeats),
    )
    begun = build_basis(items, asking.rubric, model=model.model, api_base=model.api_base)
    count = _Count()
    try:
        with open_predictions(out, begun) as file:
            _tell_known(file, out)
            with name_file(labels):
                complete(_write_predictions(engine, items, asking, file, count, model.model))
    except OSError as error:
        raise typer.BadParameter(f"{out}: {error.strerror}", param_hint="--out") from None
    except KeyboardInterrupt:
        say(f"stopped; {plural(count.made, 'prediction')} more in {out}, and the same command goes on from there")
        raise
    if count.decided:
        say(f"of {plural(count.decided, 'item')} nobody is asked: code decides them, or no call is made in them")
    say(f"wrote {plural(count.made, 'prediction')} to {out}")
    return ExitCode.DATA if count.missing else ExitCode.PASSED


def _tell_known(file: PredictionFile, out: Path) -> None:
    if file.known:
        say(f"going on: {plural(len(file.known), 'prediction')} in {out} already")


async def _write_predictions(
    engine: Engine, items: Iterable[LabelledItem], asking: Asking, file: PredictionFile, count: _Count, model: str
) -> None:
    from service.calibration.report_predictions import UnansweredItem
    from service.jobs.predicting import collect_predictions

    done = frozenset(one.answer_id for one in file.known)
    try:
        async for one in collect_predictions(engine, items, asking, done=done):
            if isinstance(one, UnansweredItem) and one.shared_cause is not None and not count.made:
                message = f"the judge {model} answered nothing: {NO_JUDGE[one.shared_cause]}; the same command goes on"
                raise SettingsError.at("CALLGRADE_JUDGE_MODEL", message)
            if isinstance(one, UnansweredItem) and one.nothing_to_ask:
                count.decided += 1
                continue
            if isinstance(one, UnansweredItem):
                count.missing += 1
                say(f"not judged: {escape_unprintable(str(one))}")
                continue
            file.add(one)
            count.made += 1
    finally:
        await engine.close()

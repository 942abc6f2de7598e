"""`callgrade calibrate judge`: have judges answer labelled items. It can be stopped and resumed at any time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.calibrating.options import LabelsOption
from service.cli.command import command
from service.cli.exits import ABSENT_JUDGE_REASONS, ExitCode
from service.cli.rendering.console import pluralize, say
from service.errors import SettingsError
from service.reporting.escaping import escape_unprintable

if TYPE_CHECKING:
    from service.calibration.labels import LabelledItem
    from service.calibration.prediction_files import PredictionFile
    from service.core.report import JudgeMode
    from service.engine import Engine
    from service.predicting import AskSettings


@command(2)
def calibrate_judge(
    labels: LabelsOption,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write the predictions to, as JSON Lines.")
    ] = None,
    rubric: Annotated[
        str, typer.Option("--rubric", "-r", metavar="ID", help="Rubric whose judges are asked.")
    ] = "four_step",
    judges: Annotated[
        Literal["cached", "live", "fresh"], typer.Option(help="How to ask judges; fresh ignores cached answers.")
    ] = "live",
    repeats: Annotated[
        int,
        typer.Option(metavar="K", min=1, max=100, help="Answers per question; more than one measures a judge's noise."),
    ] = 1,
    price: Annotated[
        bool, typer.Option("--price", help="Only print the price if nothing were cached, without asking anyone.")
    ] = False,
) -> int:
    """Have judges answer the labelled items, and write the predictions that `calibrate run` fits.

    You can stop it at any time. Run it again with the same --out to ask only for what is missing.
    """
    if price:
        return price_labels(labels, rubric=rubric, repeats=repeats)
    if out is None:
        raise typer.BadParameter("name a file for the predictions, or use --price", param_hint="--out")
    return judge_labels(labels, out, rubric=rubric, judges=judges, repeats=repeats)


def price_labels(labels: Path, *, rubric: str = "four_step", repeats: int = 1) -> ExitCode:
    """Print what it would cost at most to have a rubric's judges answer the labelled items, without asking them."""
    import asyncio

    from service.cli.calibrating.judging import build_judging_engine
    from service.cli.labelled import Sources, naming_file, read_labelled
    from service.cli.rendering.plans import Totals
    from service.predicting import AskSettings, estimate_predictions

    engine, model = build_judging_engine()
    items = read_labelled(Sources(labels)).labels.items
    asking, totals = (
        AskSettings(engine.registry.find(rubric), repeats=repeats),
        Totals(len(items), priced_model=model.model),
    )

    async def add_all() -> None:
        try:
            async for estimates in estimate_predictions(engine, items, asking):
                totals.questions += len(estimates)
                totals.add_estimates(estimates)
        finally:
            await engine.close()

    with naming_file(labels):
        asyncio.run(add_all())
    typer.echo(f"{pluralize(totals.traces, 'item')}: {pluralize(totals.questions, 'question')} for a judge")
    typer.echo(totals.describe_price("items"))
    return ExitCode.PASSED


@dataclass(slots=True)
class _Count:
    new: int = 0
    missing: int = 0
    decided: int = 0


def judge_labels(
    labels: Path, out: Path, *, rubric: str = "four_step", judges: JudgeMode = "live", repeats: int = 1
) -> ExitCode:
    """Have the judges of a rubric answer the labelled items, and write each prediction as soon as it arrives.

    A second run with the same `out` asks only for what is missing. Items without an answer are listed and left out; the exit
    code is then 5, and a second run asks for them again.
    """
    from service.calibration.prediction_files import build_basis, open_predictions
    from service.cli.calibrating.judging import build_judging_engine
    from service.cli.interrupts import complete
    from service.cli.labelled import Sources, naming_file, read_labelled
    from service.predicting import AskSettings

    engine, model = build_judging_engine()
    items, asking = (
        read_labelled(Sources(labels)).labels.items,
        AskSettings(engine.registry.find(rubric), judges, repeats),
    )
    basis = build_basis(items, asking.rubric, model=model.model, api_base=model.api_base)
    count = _Count()
    try:
        with open_predictions(out, basis) as file:
            _print_known(file, out)
            with naming_file(labels):
                complete(_write_predictions(engine, items, asking, file, count, model.model))
    except OSError as error:
        raise typer.BadParameter(f"{out}: {error.strerror}", param_hint="--out") from None
    except KeyboardInterrupt:
        say(f"stopped; {pluralize(count.new, 'new prediction')} in {out}; run the same command again to continue")
        raise
    if count.decided:
        say(f"{pluralize(count.decided, 'item')} not asked about: code decides them, or they contain no call")
    say(f"wrote {pluralize(count.new, 'prediction')} to {out}")
    return ExitCode.DATA if count.missing else ExitCode.PASSED


def _print_known(file: PredictionFile, out: Path) -> None:
    if file.known:
        say(f"resuming: {pluralize(len(file.known), 'prediction')} already in {out}")


async def _write_predictions(
    engine: Engine, items: Iterable[LabelledItem], asking: AskSettings, file: PredictionFile, count: _Count, model: str
) -> None:
    from service.calibration.report_predictions import UnansweredItem
    from service.predicting import collect_predictions

    done = frozenset(one.answer_id for one in file.known)
    try:
        async for one in collect_predictions(engine, items, asking, done=done):
            if isinstance(one, UnansweredItem) and one.shared_cause is not None and not count.new:
                reason = ABSENT_JUDGE_REASONS[one.shared_cause]
                message = f"the judge {model} answered nothing: {reason}; then run the same command again"
                raise SettingsError.at("CALLGRADE_JUDGE_MODEL", message)
            if isinstance(one, UnansweredItem) and one.nothing_to_ask:
                count.decided += 1
                continue
            if isinstance(one, UnansweredItem):
                count.missing += 1
                say(f"not judged: {escape_unprintable(str(one))}")
                continue
            file.add(one)
            count.new += 1
    finally:
        await engine.close()

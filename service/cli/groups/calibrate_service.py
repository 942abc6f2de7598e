"""Commands about the calibrations of a running service. Bodies are imported when a command runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.groups.jobs import (
    LOCAL,
    BudgetOption,
    DeadlineOption,
    IdempotencyOption,
    JobArgument,
    JudgeModelOption,
    KeyOption,
    NameOption,
    ServerOption,
    TagOption,
    WaitOption,
    WebhookOption,
    add_commands,
)

if TYPE_CHECKING:
    from service.cli.jobs import Opening

served = typer.Typer()

PredictionsOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="What judges said of it, as JSON Lines. [default: what the labelled set holds]"),
]
MethodOption = Annotated[
    Literal["auto", "identity", "platt", "isotonic", "temperature", "venn_abers"],
    typer.Option(help="The map that is fitted; auto takes Platt below 300 labels, else isotonic."),
]
SeedOption = Annotated[str | None, typer.Option(help="What the split of the groups is made with.")]


@served.command("submit")
def calibrate_submit(  # noqa: PLR0913, PLR0917 (one for each option)
    labels: Annotated[
        Path, typer.Argument(metavar="LABELS", help="The labelled set: JSON Lines (also gzipped) or CSV.")
    ],
    predictions: PredictionsOption = None,
    rubric: Annotated[
        str | None, typer.Option("--rubric", "-r", metavar="ID", help="Whose judges are asked. [default: four_step]")
    ] = None,
    judges: Annotated[
        Literal["cached", "live", "fresh"] | None,
        typer.Option(help="How they are asked, also where the labelled set holds what others said."),
    ] = None,
    judge_model: JudgeModelOption = None,
    repeats: Annotated[int, typer.Option(metavar="K", min=1, max=10, help="Answers to each question.")] = 1,
    method: MethodOption = "auto",
    seed: SeedOption = None,
    name: NameOption = None,
    tag: TagOption = None,
    budget_usd: BudgetOption = None,
    deadline_hours: DeadlineOption = None,
    webhook: WebhookOption = None,
    idempotency_key: IdempotencyOption = None,
    watch: Annotated[bool, typer.Option("--watch", "--wait", help="Go on until it has ended.")] = False,  # noqa: FBT002
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Submit labelled items to a running service, and print the id of the calibration alone on standard output.

    The service's judges answer them, unless there are recorded predictions, and are fitted.
    """
    from service.cli.batch_service import Service  # noqa: PLC0415
    from service.cli.batch_submit import options_of  # noqa: PLC0415
    from service.cli.calibrate_service import Submission, submit  # noqa: PLC0415
    from service.cli.labelled import Sources  # noqa: PLC0415

    options = options_of(
        name=name,
        rubric=rubric,
        judges=judges,
        judge_model=judge_model,
        repeats=None if repeats == 1 else repeats,
        method=None if method == "auto" else method,
        seed=seed,
        tags=tag or (),
        budget_usd=budget_usd,
        deadline_hours=deadline_hours,
        webhook=webhook,
    )
    submission = Submission(Sources(labels, predictions or ()), options, judges is not None, idempotency_key)
    return submit(Service(server, key), submission, watch=watch)


@served.command("watch")
def calibrate_watch(calibration_id: JobArgument, server: ServerOption = LOCAL, key: KeyOption = None) -> int:
    """Show how a calibration gets on until it has ended. Interrupting this leaves it alone.

    Exit code 0 where it completed; 2 where it failed, expired, was cancelled, or waits for a larger budget.
    """
    from service.cli.batch_service import Service  # noqa: PLC0415
    from service.cli.calibrate_service import watch  # noqa: PLC0415

    return watch(Service(server, key), calibration_id)


@served.command("results")
def calibrate_results(
    calibration_id: JobArgument,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where report and fits are written.")],
    wait: WaitOption = False,  # noqa: FBT002 (typer passes it by name)
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Fetch report and fits of a completed calibration: the folder that `calibrate run` writes."""
    from service.cli.batch_service import Service  # noqa: PLC0415
    from service.cli.calibrate_service import fetch  # noqa: PLC0415

    return fetch(Service(server, key), calibration_id, out, wait=wait)


def _calibrations(server: str, key: str | None) -> Opening:
    from service.cli.batch_service import Service  # noqa: PLC0415

    return Service(server, key).calibrations()


add_commands(
    served,
    _calibrations,
    listed="List the calibrations of a service, newest first.",
    shown="Show how far a calibration is.",
    cancelled="Cancel a calibration: nothing is fitted.",
    resumed="Go on with a paused calibration.",
    deleted="Delete a calibration that has ended, with its items, report and fits.",
)

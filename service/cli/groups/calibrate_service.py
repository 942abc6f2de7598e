"""Commands about the calibrations of a running service. Bodies are imported when a command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from service.cli.groups.batch import (
    LOCAL,
    AfterOption,
    BudgetOption,
    DeadlineOption,
    IdempotencyOption,
    JudgeModelOption,
    KeyOption,
    LimitOption,
    MoreOption,
    NameOption,
    ServerOption,
    ShownOption,
    StatusOption,
    TagOption,
    WebhookOption,
)

served = typer.Typer()

CalibrationArgument = Annotated[str, typer.Argument(metavar="ID", help="The id that `calibrate submit` prints.")]
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


@served.command("list")
def calibrate_list(
    status: StatusOption = None,
    limit: LimitOption = 20,
    after: AfterOption = None,
    output_format: ShownOption = "table",
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """List the calibrations of a service, newest first."""
    from service.cli.batch_service import Service  # noqa: PLC0415
    from service.cli.jobs import list_jobs  # noqa: PLC0415

    jobs = Service(server, key).calibrations()
    return list_jobs(jobs, limit=limit, after=after, status=status, output_format=output_format)


@served.command("status")
def calibrate_status(
    calibration_id: CalibrationArgument,
    output_format: ShownOption = "table",
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Show how far a calibration is."""
    from service.cli.batch_service import Service  # noqa: PLC0415
    from service.cli.jobs import show_job  # noqa: PLC0415

    return show_job(Service(server, key).calibrations(), calibration_id, output_format=output_format)


@served.command("watch")
def calibrate_watch(calibration_id: CalibrationArgument, server: ServerOption = LOCAL, key: KeyOption = None) -> int:
    """Show how a calibration gets on until it has ended. Interrupting this leaves it alone.

    Exit code 0 where it completed; 2 where it failed, expired, was cancelled, or waits for a larger budget.
    """
    from service.cli.batch_service import Service  # noqa: PLC0415
    from service.cli.calibrate_service import watch  # noqa: PLC0415

    return watch(Service(server, key), calibration_id)


@served.command("results")
def calibrate_results(
    calibration_id: CalibrationArgument,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where report and fits are written.")],
    wait: Annotated[bool, typer.Option("--wait", help="Go on until it has ended.")] = False,  # noqa: FBT002
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Fetch report and fits of a completed calibration: the folder that `calibrate run` writes."""
    from service.cli.batch_service import Service  # noqa: PLC0415
    from service.cli.calibrate_service import fetch  # noqa: PLC0415

    return fetch(Service(server, key), calibration_id, out, wait=wait)


@served.command("cancel")
def calibrate_cancel(calibration_id: CalibrationArgument, server: ServerOption = LOCAL, key: KeyOption = None) -> int:
    """Cancel a calibration: nothing is fitted."""
    from service.cli.batch_service import Service  # noqa: PLC0415
    from service.cli.jobs import cancel  # noqa: PLC0415

    return cancel(Service(server, key).calibrations(), calibration_id)


@served.command("resume")
def calibrate_resume(
    calibration_id: CalibrationArgument,
    budget_usd: MoreOption = None,
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Go on with a paused calibration."""
    from service.cli.batch_service import Service  # noqa: PLC0415
    from service.cli.jobs import resume  # noqa: PLC0415

    return resume(Service(server, key).calibrations(), calibration_id, budget_usd=budget_usd)


@served.command("delete")
def calibrate_delete(calibration_id: CalibrationArgument, server: ServerOption = LOCAL, key: KeyOption = None) -> int:
    """Delete a calibration that has ended, with its items, report and fits."""
    from service.cli.batch_service import Service  # noqa: PLC0415
    from service.cli.jobs import delete  # noqa: PLC0415

    return delete(Service(server, key).calibrations(), calibration_id)

"""`callgrade calibrate submit`: submit labelled items for calibration. Submitting them again makes no second calibration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.calibrating.options import (
    CascadeOption,
    GuaranteeOption,
    MethodOption,
    PredictionsOption,
    SeedOption,
    check_cascade,
)
from service.cli.command import command
from service.cli.exits import ExitCode
from service.cli.remote.options import (
    LOCAL_URL,
    BudgetOption,
    DeadlineOption,
    IdempotencyOption,
    JudgeModelOption,
    KeyOption,
    NameOption,
    QuestionsOption,
    ServerOption,
    TagOption,
    WatchOption,
    WebhookOption,
)
from service.cli.rendering.console import pluralize, say
from service.cli.rendering.refusals import print_refusals

if TYPE_CHECKING:
    from pydantic import BaseModel


@command(10)
def calibrate_submit(
    labels: Annotated[
        Path, typer.Argument(metavar="LABELS", help="The labelled set: JSON Lines (also gzipped) or CSV.")
    ],
    predictions: PredictionsOption = None,
    rubric: Annotated[
        str | None,
        typer.Option("--rubric", "-r", metavar="ID", help="Rubric whose judges are asked. [default: four_step]"),
    ] = None,
    judges: Annotated[
        Literal["cached", "live", "fresh"] | None,
        typer.Option(help="How to ask judges; if given, they are asked even if the labelled set contains predictions."),
    ] = None,
    judge_model: JudgeModelOption = None,
    repeats: Annotated[int, typer.Option(metavar="K", min=1, max=10, help="Answers per question.")] = 1,
    method: MethodOption = "auto",
    seed: SeedOption = None,
    guarantee: GuaranteeOption = None,
    cascade: CascadeOption = None,
    name: NameOption = None,
    tag: TagOption = None,
    budget_usd: BudgetOption = None,
    max_questions: QuestionsOption = None,
    deadline_hours: DeadlineOption = None,
    webhook: WebhookOption = None,
    idempotency_key: IdempotencyOption = None,
    watch: WatchOption = False,
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Submit labelled items to a running service for calibration, and print the id.

    The service asks its judges about the items, unless there are recorded predictions, and fits them. Only the id goes to
    standard output.
    """
    from service.cli.labelled import Sources, read_labelled, read_prediction_files
    from service.cli.remote.service import Service
    from service.cli.remote.uploads import JobUpload, build_options
    from service.client.failures import RefusedError
    from service.reading.trace_files import RecordPlace

    if judges is not None and predictions:
        raise typer.BadParameter(
            "--judges asks the judges, so recorded predictions cannot be used", param_hint="--predictions"
        )
    check_cascade(cascade or (), guarantee)
    options = build_options(
        name=name,
        rubric=rubric,
        judges=judges,
        judge_model=judge_model,
        repeats=None if repeats == 1 else repeats,
        method=None if method == "auto" else method,
        seed=seed,
        guarantee=guarantee,
        cascade=",".join(cascade or ()) or None,
        tags=tag or (),
        budget_usd=budget_usd,
        max_questions=max_questions,
        deadline_hours=deadline_hours,
        webhook=webhook,
    )
    labelled = read_labelled(Sources(labels, predictions or ()))
    recorded = read_prediction_files(predictions or ()) or (() if judges is not None else labelled.predictions)
    with JobUpload("calibration", options, idempotency_key) as upload, Service(server, key).connect() as client:
        lines = labelled.labels.lines
        for item in sorted(
            labelled.labels.items, key=lambda item: lines[item.key]
        ):  # so that a report names the same lines
            upload.add(_write_line(item), RecordPlace(str(labels), lines[item.key]))
        for one in recorded:
            upload.add(_write_line(one), RecordPlace(f"the prediction of {one.id} by {one.judge}"))
        try:
            submitted = upload.send(client.calibrations.submit)
        except RefusedError as error:
            print_refusals(upload.list_refusals(error), "error")
            say(f"nothing was submitted: {error.problem.detail}")
            return ExitCode.DATA
        more = f" with {pluralize(len(recorded), 'recorded prediction')}" if recorded else ""
        what = pluralize(len(labelled.labels.items), "labelled item") + more
        return upload.print_submitted(client.calibrations, submitted, what, watch=watch)


def _write_line(one: BaseModel) -> bytes:
    return one.model_dump_json(exclude_defaults=True).encode() + b"\n"

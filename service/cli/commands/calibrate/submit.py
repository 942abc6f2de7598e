"""`callgrade calibrate submit`: submit labelled items for calibration. Submitting them again makes no second calibration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

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
    from service.calibration.labels import LabelledItem
    from service.calibration.predictions import Prediction
    from service.cli.inputs import Refusal
    from service.cli.labelled import Sources
    from service.cli.remote.service import Service
    from service.cli.remote.uploads import UploadRequest
    from service.errors import InputError
    from service.reading.trace_files import RecordPlace


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
    from service.cli.labelled import Sources
    from service.cli.remote.service import Service
    from service.cli.remote.uploads import UploadRequest, build_options

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
    lines = _read_lines(Sources(labels, predictions or ()), judged=judges is not None)
    return submit(Service(server, key), lines, UploadRequest("calibration", options, idempotency_key), watch=watch)


@dataclass
class LabelledBody:
    """The body of a submission, and where each of its lines came from."""

    items: int = 0
    lines: list[bytes] = field(default_factory=list[bytes])
    places: list[RecordPlace] = field(default_factory=list["RecordPlace"])

    @property
    def file(self) -> BinaryIO:
        """The lines, gzipped."""
        import gzip

        return BytesIO(gzip.compress(b"".join(self.lines), 6, mtime=0))

    def add(self, one: LabelledItem | Prediction, place: RecordPlace) -> None:
        """Add a line."""
        self.lines.append(one.model_dump_json(exclude_defaults=True).encode() + b"\n")
        self.places.append(place)

    def digest(self, options: Mapping[str, str]) -> str:
        """Return the SHA-256 of the lines and the options, in hex."""
        import hashlib

        from pydantic_core import to_json

        return hashlib.sha256(b"".join([*self.lines, to_json(sorted(options.items()))])).hexdigest()

    def refuse_line(self, number: int, error: InputError) -> Refusal:
        """Build the refusal of a line (from 1) that the service does not accept."""
        from service.cli.inputs import Refusal
        from service.reading.trace_files import RecordPlace

        known = 1 <= number <= len(self.places)
        return Refusal(self.places[number - 1] if known else RecordPlace("the service"), error)

    def __str__(self) -> str:
        predictions = len(self.lines) - self.items
        beside = f" with {pluralize(predictions, 'recorded prediction')}" if predictions else ""
        return pluralize(self.items, "labelled item") + beside


def submit(service: Service, lines: LabelledBody, upload_request: UploadRequest, *, watch: bool = False) -> ExitCode:
    """Submit a labelled set, with recorded predictions if there are any, and print the id."""
    from service.cli.remote.uploads import list_refusals, print_id, print_submitted, send
    from service.client.failures import RefusedError

    with service.calibrations() as client:
        try:
            submitted = send(client.submit, lines, upload_request)
        except RefusedError as error:
            print_refusals(list_refusals(error, lines, upload_request), "error")
            say(f"nothing was submitted: {error.problem.detail}")
            return ExitCode.DATA
        print_submitted(submitted, str(lines), upload_request)
        return print_id(client, submitted.job.id, watch=watch)


def _read_lines(sources: Sources, *, judged: bool) -> LabelledBody:
    """Read the labelled set as a body. `judged`: leave out recorded predictions, because judges are to be asked."""
    from service.cli.labelled import read_labelled, read_prediction_files
    from service.reading.trace_files import RecordPlace

    labelled, body = read_labelled(sources), LabelledBody()
    predictions = read_prediction_files(sources.predictions) or (() if judged else labelled.predictions)
    lines = labelled.labels.lines
    for item in sorted(
        labelled.labels.items, key=lambda item: lines[item.key]
    ):  # so that a report names the same lines
        body.add(item, RecordPlace(str(sources.labels), lines[item.key]))
    body.items = len(body.lines)
    for one in predictions:
        body.add(one, RecordPlace(f"the prediction of {one.id} by {one.judge}"))
    return body

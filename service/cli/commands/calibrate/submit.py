"""`callgrade calibrate submit`: labelled items become a calibration by a running service, once."""

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
    LOCAL,
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
from service.cli.rendering.console import plural, say
from service.cli.rendering.refusals import tell_refusals

if TYPE_CHECKING:
    from service.calibration.labels import LabelledItem
    from service.calibration.predictions import Prediction
    from service.cli.inputs import Refusal
    from service.cli.labelled import Sources
    from service.cli.remote.service import Service
    from service.cli.remote.uploads import Sending
    from service.errors import InputError
    from service.reading.trace_files import RecordPlace


@command(10)
def calibrate_submit(
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
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Submit labelled items to a running service, and print the id of the calibration alone on standard output.

    The service's judges answer them, unless there are recorded predictions, and are fitted.
    """
    from service.cli.labelled import Sources
    from service.cli.remote.service import Service
    from service.cli.remote.uploads import Sending, build_options

    if judges is not None and predictions:
        raise typer.BadParameter(
            "the judges are asked, so recorded predictions have no place", param_hint="--predictions"
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
    return submit(Service(server, key), lines, Sending("calibration", options, idempotency_key), watch=watch)


@dataclass
class LabelledBody:
    """A body, and where each of its lines came from."""

    items: int = 0
    lines: list[bytes] = field(default_factory=list[bytes])
    places: list[RecordPlace] = field(default_factory=list["RecordPlace"])

    @property
    def file(self) -> BinaryIO:
        """The lines, packed."""
        import gzip

        return BytesIO(gzip.compress(b"".join(self.lines), 6, mtime=0))

    def add(self, one: LabelledItem | Prediction, place: RecordPlace) -> None:
        """Adds a line."""
        self.lines.append(one.model_dump_json(exclude_defaults=True).encode() + b"\n")
        self.places.append(place)

    def digest(self, options: Mapping[str, str]) -> str:
        """sha256 of what is submitted, with its options, in hex."""
        import hashlib

        from pydantic_core import to_json

        return hashlib.sha256(b"".join([*self.lines, to_json(sorted(options.items()))])).hexdigest()

    def refuse_line(self, number: int, error: InputError) -> Refusal:
        """The record of a line, from 1, that the service cannot take."""
        from service.cli.inputs import Refusal
        from service.reading.trace_files import RecordPlace

        known = 1 <= number <= len(self.places)
        return Refusal(self.places[number - 1] if known else RecordPlace("the service"), error)

    def __str__(self) -> str:
        predictions = len(self.lines) - self.items
        beside = f" with {plural(predictions, 'recorded prediction')}" if predictions else ""
        return plural(self.items, "labelled item") + beside


def submit(service: Service, lines: LabelledBody, sending: Sending, *, watch: bool = False) -> ExitCode:
    """Submits a labelled set, with recorded predictions if there are any: the id alone on standard output."""
    from service.cli.remote.uploads import list_refusals, print_id, send, tell_submitted
    from service.client.failures import RefusedError

    with service.calibrations() as client:
        try:
            found = send(client.submit, lines, sending)
        except RefusedError as error:
            tell_refusals(list_refusals(error, lines, sending), "error")
            say(f"nothing was submitted: {error.problem.detail}")
            return ExitCode.DATA
        tell_submitted(found, str(lines), sending)
        return print_id(client, found.job.id, watch=watch)


def _read_lines(sources: Sources, *, judged: bool) -> LabelledBody:
    """`judged`: judges are to be asked, though there are recorded predictions beside the labels."""
    from service.cli.labelled import read_labelled, read_predicted
    from service.reading.trace_files import RecordPlace

    found, body = read_labelled(sources), LabelledBody()
    predictions = read_predicted(sources.predictions) or (() if judged else found.predictions)
    lines = found.labels.lines
    for item in sorted(found.labels.items, key=lambda item: lines[item.key]):  # so that a report names the same lines
        body.add(item, RecordPlace(str(sources.labels), lines[item.key]))
    body.items = len(body.lines)
    for one in predictions:
        body.add(one, RecordPlace(f"the prediction of {one.id} by {one.judge}"))
    return body

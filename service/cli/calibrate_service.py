"""`callgrade calibrate submit|watch|results`: calibrations by a running service."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import typer
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from service.calibrating.labels import LabelledItem
from service.calibrating.predictions import Prediction
from service.calibrating.results import Run, read_report
from service.cli.batch_service import Service
from service.cli.batch_submit import refused_lines, sent, tell_earlier, tell_made, tell_refused
from service.cli.calibrate import write_run
from service.cli.console import console, plural, say
from service.cli.exits import ExitCode
from service.cli.inputs import Refused
from service.cli.jobs import ended
from service.cli.labelled import Sources, read_labelled, read_predicted
from service.core.calibrate import Fit
from service.errors import InputError
from service.io.client import CalibrationClient, ForeignError, RefusedError
from service.io.traces import Place

FIT: TypeAdapter[Fit] = TypeAdapter(Fit)


@dataclass(frozen=True, slots=True)
class Submission:
    """What the command line says of a calibration. `options` are those of POST /v1/calibrations."""

    sources: Sources
    options: Mapping[str, str]
    judged: bool
    """Whether judges are to be asked, though there are recorded predictions beside the labels."""
    key: str | None = None
    """The Idempotency-Key; None: one is made of the content."""


@dataclass
class _Lines:
    """A body, and where each of its lines came from."""

    items: int = 0
    lines: list[bytes] = field(default_factory=list[bytes])
    places: list[Place] = field(default_factory=list[Place])

    def add(self, one: LabelledItem | Prediction, place: Place) -> None:
        self.lines.append(one.model_dump_json(exclude_defaults=True).encode() + b"\n")
        self.places.append(place)

    def digest(self, options: Mapping[str, str]) -> str:
        return hashlib.sha256(b"".join([*self.lines, to_json(sorted(options.items()))])).hexdigest()

    def refused_at(self, number: int, error: InputError) -> Refused:
        known = 1 <= number <= len(self.places)
        return Refused(self.places[number - 1] if known else Place("the service"), error)


def submit(service: Service, submission: Submission, *, watch: bool = False) -> ExitCode:
    """Submits a labelled set, with recorded predictions if there are any: the id alone on standard output."""
    body, own = _body_of(submission), submission.key is not None
    key = submission.key or f"callgrade-{body.digest(submission.options)}"
    packed = BytesIO(gzip.compress(b"".join(body.lines), 6, mtime=0))
    with service.calibrations() as client:
        try:
            found = sent(lambda: client.submit(packed, submission.options, key=key))
        except RefusedError as error:
            return _refused(error, body, own=own)
        if found.earlier:
            tell_earlier(found.job, noun="calibration", own=own)
        else:
            tell_made(_what(body), noun="calibration", own=own)
        say(f"callgrade calibrate watch {found.job.id} shows how it gets on")
        console().print(found.job.id, soft_wrap=True)
        sys.stdout.flush()
        return _watched(client, found.job.id) if watch else ExitCode.PASSED


def watch(service: Service, name: str) -> ExitCode:
    """Shows how a calibration gets on until it has ended; the exit code says how."""
    with service.calibrations() as client:
        return _watched(client, name)


def fetch(service: Service, name: str, out: Path, *, wait: bool = False) -> ExitCode:
    """Writes what `callgrade calibrate run` writes, of a calibration that is completed."""
    with service.calibrations() as client:
        if wait and (ended := _watched(client, name)) != ExitCode.PASSED:
            return ended
        run = _run_of(client.report(name), client.fits(name))
    write_run(run, out)
    return ExitCode.PASSED


def _body_of(submission: Submission) -> _Lines:
    sources, body = submission.sources, _Lines()
    if submission.judged and sources.predictions:
        raise typer.BadParameter(
            "the judges are asked, so recorded predictions have no place", param_hint="--predictions"
        )
    found = read_labelled(sources)
    predictions = read_predicted(sources.predictions) or (() if submission.judged else found.predictions)
    lines = found.labels.lines
    for item in sorted(found.labels.items, key=lambda item: lines[item.key]):  # so that a report names the same lines
        body.add(item, Place(str(sources.labels), lines[item.key]))
    body.items = len(body.lines)
    for one in predictions:
        body.add(one, Place(f"the prediction of {one.id} by {one.judge}"))
    return body


def _what(body: _Lines) -> str:
    predictions = len(body.lines) - body.items
    beside = f" with {plural(predictions, 'recorded prediction')}" if predictions else ""
    return plural(body.items, "labelled item") + beside


def _refused(error: RefusedError, body: _Lines, *, own: bool) -> ExitCode:
    lines: Sequence[tuple[int, InputError]] = refused_lines(error.problem, noun="calibration", own=own)
    tell_refused([body.refused_at(number, found) for number, found in lines], "error")
    say(f"nothing was submitted: {error.problem.detail}")
    return ExitCode.DATA


def _watched(client: CalibrationClient, name: str) -> ExitCode:
    """Shows how it gets on; one that waits for a larger budget is not waited for."""
    job = ended(client, name, verb="judging")
    if job is None:
        return ExitCode.FAILED
    if job.unanswered:
        say(f"{plural(job.unanswered, 'question')} without an answer: {'; '.join(job.reasons)}")
    if job.status != "completed":
        return ExitCode.FAILED
    say(f"callgrade calibrate results {job.id} --out FOLDER fetches report and {plural(job.fits, 'fit')}")
    return ExitCode.PASSED


def _run_of(report: bytes, fits: bytes) -> Run:
    try:
        files = json.loads(fits)["data"]
        return Run(read_report(report), tuple([FIT.validate_json(to_json(file["fit"])) for file in files]))
    except (ValidationError, ValueError, LookupError, TypeError):
        raise ForeignError from None

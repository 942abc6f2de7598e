"""Admitting what is submitted: from a body in a file to a job in the database. For a thread: it takes the time it takes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Literal, Protocol

from pydantic import JsonValue
from pydantic_core import to_json

from service.engine import Engine
from service.errors import InputError, TooLargeError
from service.jobs.chunking import Cutter
from service.jobs.spool import Spool
from service.jobs.submissions import (
    Defaults,
    ItemIntake,
    PointerOf,
    RunOptions,
    SubmittedEntry,
    point_to_item,
    point_to_line,
    read_document_entries,
    read_line_entries,
)
from service.reading.strict_json import Limits
from service.store.database import insist
from service.store.jobs.job import Kind
from service.store.jobs.jobs import J, Jobs
from service.store.jobs.submission import JobSubmission

PATIENCE = 10.0
"""Seconds for which a database that is out of reach is tried."""


class Receivers(Protocol):
    """Who may be told of the end of a job."""

    def admit(self, url: str) -> None:
        """InputError at /webhook for a URL that is not allowed."""
        ...


class RequestedLimits(Protocol):
    """Limits that somebody asks for."""

    @property
    def budget_usd(self) -> float | None:
        """The most that judges may cost; None: nothing is said."""
        ...

    @property
    def max_questions(self) -> int | None:
        """The most requests to them; None: nothing is said."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBounds:
    """What a job may hold, and how it is cut."""

    limits: Limits
    """Of each item, and of a whole document."""
    chunk: int
    """Items in a chunk."""
    max_items: int
    hours: float
    """Time for a batch that names none."""
    usd: float | None = None
    """The most that the judges of a batch may cost; None: as much as it takes."""
    questions: int | None = None
    """The most requests to judges of a batch; None: as many as it takes."""

    def admit_spending(self, asked: RequestedLimits) -> None:
        """InputError for more than a batch may cost, or ask."""
        usd, questions = asked.budget_usd, asked.max_questions
        if usd is not None and self.usd is not None and usd > self.usd:
            raise InputError.at("/budget_usd", f"expected at most {self.usd:g} (CALLGRADE_BATCH_MAX_USD), not {usd:g}")
        if questions is not None and self.questions is not None and questions > self.questions:
            told = f"expected at most {self.questions} (CALLGRADE_BATCH_MAX_QUESTIONS), not {questions}"
            raise InputError.at("/max_questions", told)

    def choose_budget(self, asked: RequestedLimits) -> float | None:
        """The budget of a batch that asks for these."""
        return self.usd if asked.budget_usd is None else asked.budget_usd

    def choose_max_questions(self, asked: RequestedLimits) -> int | None:
        """The most requests to judges of a batch that asks for these."""
        return self.questions if asked.max_questions is None else asked.max_questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """What somebody sent."""

    tenant: str
    key: str | None
    """The Idempotency-Key."""
    form: Literal["document", "lines"]
    options: Mapping[str, JsonValue]
    """Those that stand beside the body; a document's own go before them."""
    body: Spool

    def compute_fingerprint(self, kind: Kind) -> str:
        """The same for the same body with the same options, sent as the same kind of job."""
        told = to_json([self.form, dict(sorted(self.options.items())), self.body.digest])
        own = hashlib.sha256(told).hexdigest()
        return own if kind == "scores" else hashlib.sha256(f"{kind} {own}".encode()).hexdigest()


class Draft(Protocol):
    """A job on its way from a body into a store: what differs between the kinds of them."""

    def __init__(self, given: dict[str, JsonValue], engine: Engine, bounds: JobBounds) -> None:
        """InputError for options that cannot be used, by their pointers."""
        ...

    @property
    def options(self) -> RunOptions:
        """The options that every job has."""
        ...

    @property
    def dry(self) -> bool:
        """Whether it is cut, and not kept."""
        ...

    def take(self, entries: Iterable[SubmittedEntry], cutter: Cutter, pointer_of: PointerOf) -> dict[str, Any]:
        """Cuts the items; what the submission has besides those of any other kind. Raises BadLinesError."""
        ...


class BatchDraft:
    """A batch: each item is a request."""

    def __init__(self, given: dict[str, JsonValue], engine: Engine, bounds: JobBounds) -> None:
        self._defaults = Defaults(given, engine)
        self._max_items = bounds.max_items
        self.options = self._defaults.options
        self.dry = self.options.dry_run

    def take(self, entries: Iterable[SubmittedEntry], cutter: Cutter, pointer_of: PointerOf) -> dict[str, Any]:
        """Cuts the items."""
        intake = ItemIntake(self._defaults, cutter, max_items=self._max_items, pointer_of=pointer_of)
        return {"options": self._defaults.given, "left_out": intake.take(entries)}


class JobAdmission:
    """Admits jobs of one kind to a store."""

    def __init__(
        self, draft: type[Draft], engine: Engine, bounds: JobBounds, receivers: Receivers | None = None
    ) -> None:
        """`receivers` None: nobody may be told of the end of a job."""
        self._draft = draft
        self._engine = engine
        self._bounds = bounds
        self._receivers = receivers

    def take(self, sent: Upload, jobs: Jobs[J], cutter: Cutter) -> J | None:
        """The job that is made, or was made under the same key; None for a dry run, whose items are in the cutter.

        Raises InputError for options that cannot be used, BadLinesError for items, and what `Jobs.submit` raises.
        """
        given, entries, pointer_of = _read_entries(sent, self._bounds.limits)
        draft = self._draft(given, self._engine, self._bounds)
        self._bounds.admit_spending(draft.options)
        admit_webhook(draft.options.webhook, self._receivers)
        fingerprint = sent.compute_fingerprint(jobs.kind)
        if not draft.dry and (earlier := _find_earlier(sent, jobs, fingerprint)):
            return earlier
        own = draft.take(entries, cutter, pointer_of)
        if draft.dry:
            return None
        submission = self._build_submission(sent, draft.options, fingerprint, own)
        return insist(lambda: jobs.submit(submission, cutter), give_up=PATIENCE)

    def _build_submission(
        self, sent: Upload, options: RunOptions, fingerprint: str, own: Mapping[str, Any]
    ) -> JobSubmission:
        return JobSubmission(
            tenant=sent.tenant,
            # One without a key has its own: an answer to COMMIT that gets lost must not make a second job of the next try.
            key=sent.key or f"\n{token_hex(16)}",
            fingerprint=fingerprint,
            name=options.name,
            tags=options.tags,
            budget_usd=self._bounds.choose_budget(options),
            max_questions=self._bounds.choose_max_questions(options),
            hours=options.deadline_hours or self._bounds.hours,
            webhook=options.webhook,
            **own,
        )


def _find_earlier(sent: Upload, jobs: Jobs[J], fingerprint: str) -> J | None:
    key = sent.key
    if key is None:
        return None
    return insist(lambda: jobs.find_submitted(sent.tenant, key, fingerprint), give_up=PATIENCE)


def admit_webhook(url: str | None, receivers: Receivers | None) -> None:
    """InputError at /webhook for a URL that may not be told of the end of a batch. None: nobody is told."""
    if url is None:
        return
    if receivers is None:
        raise InputError.at("/webhook", "no webhook is allowed here (CALLGRADE_WEBHOOK_HOSTS)")
    receivers.admit(url)


def explain_too_large(error: TooLargeError) -> InputError:
    """The error of a document that passes a limit, with what to do about it where it is too large as a whole."""
    if any(one.path for one in error.problems):
        return error
    told = "; ".join(one.message for one in error.problems)
    return TooLargeError.at("", f"{told}; larger batches are sent as JSON Lines (application/x-ndjson)")


def _read_entries(sent: Upload, limits: Limits) -> tuple[dict[str, JsonValue], Iterable[SubmittedEntry], PointerOf]:
    """The options and the items of a body, and what points to an item."""
    given = dict(sent.options)
    if sent.form == "lines":
        return given, read_line_entries(sent.body.file, limits), point_to_line
    try:
        own, entries = read_document_entries(sent.body.file.read(), limits)
    except TooLargeError as error:
        raise explain_too_large(error) from None
    return {**given, **own}, entries, point_to_item

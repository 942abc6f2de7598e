"""Admit a submission: turn a body in a file into a job in the database. Blocking, so call it in a thread."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Protocol

from pydantic import JsonValue
from pydantic_core import to_json

from service.engine import Engine
from service.errors import InputError
from service.jobs.chunking import Cutter
from service.jobs.spool import Spool
from service.jobs.submissions import (
    BatchDefaults,
    ItemIntake,
    RunOptions,
    SubmittedEntry,
    read_line_entries,
)
from service.reading.strict_json import Limits
from service.store.database import insist
from service.store.jobs.job import Kind
from service.store.jobs.jobs import J, Jobs
from service.store.jobs.submission import JobSubmission

DATABASE_PATIENCE_S = 10.0
"""Seconds to keep trying a database that is out of reach."""


class WebhookPolicy(Protocol):
    """The URLs that may be notified when a job ends."""

    def admit(self, url: str) -> None:
        """Raise InputError at /webhook for a URL that is not allowed."""
        ...


class RequestedLimits(Protocol):
    """The spending limits that a submitter requests."""

    @property
    def budget_usd(self) -> float | None:
        """The most that judges may cost; None: not requested."""
        ...

    @property
    def max_questions(self) -> int | None:
        """The most requests to judges; None: not requested."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBounds:
    """How much a job may hold, and how it is cut into chunks."""

    limits: Limits
    """Limits for each item."""
    chunk_items: int
    """Items per chunk."""
    max_items: int
    default_hours: float
    """Hours until the deadline of a batch that names none."""
    max_usd: float | None = None
    """The most that the judges of a batch may cost; None: unlimited."""
    max_questions: int | None = None
    """The most requests to judges in a batch; None: unlimited."""

    def admit_spending(self, requested: RequestedLimits) -> None:
        """Raise InputError for a budget or a question limit above what a batch may have."""
        usd, questions = requested.budget_usd, requested.max_questions
        if usd is not None and self.max_usd is not None and usd > self.max_usd:
            raise InputError.at(
                "/budget_usd", f"expected at most {self.max_usd:g} (CALLGRADE_BATCH_MAX_USD), not {usd:g}"
            )
        if questions is not None and self.max_questions is not None and questions > self.max_questions:
            message = f"expected at most {self.max_questions} (CALLGRADE_BATCH_MAX_QUESTIONS), not {questions}"
            raise InputError.at("/max_questions", message)

    def choose_budget(self, requested: RequestedLimits) -> float | None:
        """Return the budget of a batch that requests these limits."""
        return self.max_usd if requested.budget_usd is None else requested.budget_usd

    def choose_max_questions(self, requested: RequestedLimits) -> int | None:
        """Return the question limit of a batch that requests these limits."""
        return self.max_questions if requested.max_questions is None else requested.max_questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A submission as it was sent."""

    tenant: str
    key: str | None
    """The Idempotency-Key header."""
    options: Mapping[str, JsonValue]
    """Options given in the query."""
    body: Spool
    """JSON Lines."""

    def compute_fingerprint(self, kind: Kind) -> str:
        """Hash the body, its options and the kind of job: equal submissions have equal fingerprints."""
        content = to_json([dict(sorted(self.options.items())), self.body.digest])
        own = hashlib.sha256(content).hexdigest()
        return own if kind == "scores" else hashlib.sha256(f"{kind} {own}".encode()).hexdigest()


class Draft(Protocol):
    """A job on its way from a body to a store: the part that differs between kinds of jobs."""

    def __init__(self, raw_options: dict[str, JsonValue], engine: Engine, bounds: JobBounds) -> None:
        """Raise InputError with pointers for options that cannot be used."""
        ...

    @property
    def options(self) -> RunOptions:
        """The options that every job has."""
        ...

    @property
    def dry(self) -> bool:
        """Whether the job is only cut into chunks and not kept."""
        ...

    def cut(self, entries: Iterable[SubmittedEntry], cutter: Cutter) -> dict[str, Any]:
        """Cut the items, and return the submission fields that only this kind of job has. Raises BadLinesError."""
        ...


class BatchDraft:
    """A batch: each item is a score request."""

    def __init__(self, raw_options: dict[str, JsonValue], engine: Engine, bounds: JobBounds) -> None:
        self._defaults = BatchDefaults(raw_options, engine)
        self._max_items = bounds.max_items
        self.options = self._defaults.options
        self.dry = self.options.dry_run

    def cut(self, entries: Iterable[SubmittedEntry], cutter: Cutter) -> dict[str, Any]:
        """Cut the items, and return the options and the skipped items."""
        intake = ItemIntake(self._defaults, cutter, max_items=self._max_items)
        return {"options": self._defaults.given, "skipped_items": intake.take(entries)}


class JobAdmission:
    """Admits jobs of one kind to a store."""

    def __init__(
        self, draft: type[Draft], engine: Engine, bounds: JobBounds, receivers: WebhookPolicy | None = None
    ) -> None:
        """Without `receivers`, no job may name a webhook."""
        self._draft = draft
        self._engine = engine
        self._bounds = bounds
        self._receivers = receivers

    def admit(self, upload: Upload, jobs: Jobs[J], cutter: Cutter) -> J | None:
        """Return the new job, or the earlier one under the same key; None for a dry run, whose items are in the cutter.

        Raises InputError for options that cannot be used, BadLinesError for items, and what `Jobs.submit` raises.
        """
        draft = self._draft(dict(upload.options), self._engine, self._bounds)
        self._bounds.admit_spending(draft.options)
        admit_webhook(draft.options.webhook, self._receivers)
        fingerprint = upload.compute_fingerprint(jobs.kind)
        if not draft.dry and (earlier := _find_earlier(upload, jobs, fingerprint)):
            return earlier
        own = draft.cut(read_line_entries(upload.body.file, self._bounds.limits), cutter)
        if draft.dry:
            return None
        submission = self._build_submission(upload, draft.options, fingerprint, own)
        return insist(lambda: jobs.submit(submission, cutter), give_up=DATABASE_PATIENCE_S)

    def _build_submission(
        self, upload: Upload, options: RunOptions, fingerprint: str, own: Mapping[str, Any]
    ) -> JobSubmission:
        return JobSubmission(
            tenant=upload.tenant,
            # A submission without a key gets its own: if the reply to COMMIT is lost, the retry must not make a second job.
            key=upload.key or f"\n{token_hex(16)}",
            fingerprint=fingerprint,
            name=options.name,
            tags=options.tags,
            budget_usd=self._bounds.choose_budget(options),
            max_questions=self._bounds.choose_max_questions(options),
            hours=options.deadline_hours or self._bounds.default_hours,
            webhook=options.webhook,
            **own,
        )


def _find_earlier(upload: Upload, jobs: Jobs[J], fingerprint: str) -> J | None:
    key = upload.key
    if key is None:
        return None
    return insist(lambda: jobs.find_submitted(upload.tenant, key, fingerprint), give_up=DATABASE_PATIENCE_S)


def admit_webhook(url: str | None, receivers: WebhookPolicy | None) -> None:
    """Raise InputError at /webhook for a URL that may not be notified when a job ends. Without `receivers` none may."""
    if url is None:
        return
    if receivers is None:
        raise InputError.at("/webhook", "no webhook is allowed here (CALLGRADE_WEBHOOK_HOSTS)")
    receivers.admit(url)

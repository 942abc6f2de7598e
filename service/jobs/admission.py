"""Admit a submission: turn a body in a file into a job in the database. Blocking, so call it in a thread."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Protocol

from pydantic_core import to_json

from service.engine import Engine
from service.errors import InputError
from service.jobs.chunking import Cutter
from service.jobs.spool import Spool
from service.jobs.submissions import (
    BatchDefaults,
    BatchOptions,
    ItemIntake,
    RunOptions,
    SubmittedEntry,
    read_line_entries,
)
from service.outbound.webhooks import Webhooks
from service.reading.strict_json import Limits
from service.store.database import insist
from service.store.jobs.job import Kind
from service.store.jobs.jobs import J, Jobs
from service.store.jobs.submission import JobSubmission

DATABASE_PATIENCE_S = 10.0
"""Seconds to keep trying a database that is out of reach."""


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

    def admit_spending(self, usd: float | None, questions: int | None) -> None:
        """Raise InputError for a budget or a limit of questions above what a batch may have."""
        if usd is not None and self.max_usd is not None and usd > self.max_usd:
            raise InputError.at(
                "/budget_usd", f"expected at most {self.max_usd:g} (CALLGRADE_BATCH_MAX_USD), not {usd:g}"
            )
        if questions is not None and self.max_questions is not None and questions > self.max_questions:
            message = f"expected at most {self.max_questions} (CALLGRADE_BATCH_MAX_QUESTIONS), not {questions}"
            raise InputError.at("/max_questions", message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A submission as it was sent."""

    tenant: str
    key: str | None
    """The Idempotency-Key header."""
    options: RunOptions
    body: Spool
    """JSON Lines."""

    def compute_fingerprint(self, kind: Kind) -> str:
        """Hash the body, its options and the kind of job: equal submissions have equal fingerprints."""
        content = to_json([self.options.model_dump(exclude_unset=True), self.body.digest])
        own = hashlib.sha256(content).hexdigest()
        return own if kind == "scores" else hashlib.sha256(f"{kind} {own}".encode()).hexdigest()


class Draft(Protocol):
    """A job on its way from a body to a store: the part that differs between kinds of jobs."""

    def __init__(self, options: Any, engine: Engine, bounds: JobBounds) -> None:
        """Raise InputError with pointers for options that cannot be used."""
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

    def __init__(self, options: BatchOptions, engine: Engine, bounds: JobBounds) -> None:
        self._defaults = BatchDefaults(options, engine)
        self._max_items = bounds.max_items
        self.dry = options.dry_run

    def cut(self, entries: Iterable[SubmittedEntry], cutter: Cutter) -> dict[str, Any]:
        """Cut the items, and return the options and the skipped items."""
        intake = ItemIntake(self._defaults, cutter, max_items=self._max_items)
        return {"options": self._defaults.given | self._defaults.judging, "skipped_items": intake.take(entries)}


class JobAdmission:
    """Admits jobs of one kind to a store."""

    def __init__(
        self, draft: type[Draft], engine: Engine, bounds: JobBounds, receivers: Webhooks | None = None
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
        options = upload.options
        draft = self._draft(options, self._engine, self._bounds)
        self._bounds.admit_spending(options.budget_usd, options.max_questions)
        if options.webhook is not None:
            if self._receivers is None:
                raise InputError.at("/webhook", "no webhook is allowed here (CALLGRADE_WEBHOOK_HOSTS)")
            self._receivers.admit(options.webhook)
        fingerprint = upload.compute_fingerprint(jobs.kind)
        tenant, key = upload.tenant, upload.key
        if key is not None and not draft.dry:
            earlier = insist(lambda: jobs.find_submitted(tenant, key, fingerprint), give_up=DATABASE_PATIENCE_S)
            if earlier is not None:
                return earlier
        own = draft.cut(read_line_entries(upload.body.file, self._bounds.limits), cutter)
        if draft.dry:
            return None
        submission = self._build_submission(upload, fingerprint, own)
        return insist(lambda: jobs.submit(submission, cutter), give_up=DATABASE_PATIENCE_S)

    def _build_submission(self, upload: Upload, fingerprint: str, own: Mapping[str, Any]) -> JobSubmission:
        bounds, options = self._bounds, upload.options
        return JobSubmission(
            tenant=upload.tenant,
            # A submission without a key gets its own: if the reply to COMMIT is lost, the retry must not make a second job.
            key=upload.key or f"\n{token_hex(16)}",
            fingerprint=fingerprint,
            name=options.name,
            tags=options.tags,
            budget_usd=bounds.max_usd if options.budget_usd is None else options.budget_usd,
            max_questions=bounds.max_questions if options.max_questions is None else options.max_questions,
            hours=options.deadline_hours
            or bounds.default_hours + float(own.get("options", {}).get("judging_hours", 0.0)),
            webhook=options.webhook,
            **own,
        )

"""Admit a submission: turn a body in a file into a job in the database. Blocking, so call it in a thread."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Protocol

from pydantic_core import to_json

from service.engine import Engine
from service.errors import InputError
from service.jobs.chunking import Cutter
from service.jobs.spool import Spool
from service.jobs.submissions import JobBounds, RunOptions, SubmittedEntry, read_line_entries
from service.outbound.webhooks import Webhooks
from service.store.database import insist
from service.store.jobs.jobs import J, Jobs
from service.store.jobs.submission import JobSubmission

DATABASE_PATIENCE_S = 10.0
"""Seconds to keep trying a database that is out of reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A submission as it was sent."""

    tenant: str
    key: str | None
    """The Idempotency-Key header."""
    options: RunOptions
    body: Spool
    """JSON Lines."""


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
        content = to_json([jobs.kind, options.model_dump(exclude_unset=True), upload.body.digest])
        fingerprint = hashlib.sha256(content).hexdigest()
        tenant, key = upload.tenant, upload.key
        if key is not None and not draft.dry:
            earlier = insist(lambda: jobs.find_submitted(tenant, key, fingerprint), give_up=DATABASE_PATIENCE_S)
            if earlier is not None:
                return earlier
        own = draft.cut(read_line_entries(upload.body.file, self._bounds.limits), cutter)
        if draft.dry:
            return None
        bounds = self._bounds
        submission = JobSubmission(
            tenant=tenant,
            # A submission without a key gets its own: if the reply to COMMIT is lost, the retry must not make a second job.
            key=key or f"\n{token_hex(16)}",
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
        return insist(lambda: jobs.submit(submission, cutter), give_up=DATABASE_PATIENCE_S)

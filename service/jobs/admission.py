"""Admitting what is submitted: from a body in a file to a batch in the database. For a thread: it takes the time it takes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Literal, Protocol

from pydantic import JsonValue
from pydantic_core import to_json

from service.engine import Engine
from service.errors import InputError, TooLargeError
from service.jobs.chunking import Cutter
from service.jobs.spool import Spool
from service.jobs.submissions import (
    Defaults,
    Entry,
    ItemIntake,
    point_to_item,
    point_to_line,
    read_document_entries,
    read_line_entries,
)
from service.store.batch import Batch, SkippedItems
from service.store.batches import Batches, BatchSubmission
from service.store.database import insist
from service.strict_json import Limits

PATIENCE = 10.0
"""Seconds for which a database that is out of reach is tried."""


class Receivers(Protocol):
    """Who may be told of the end of a batch."""

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
class BatchBounds:
    """What a batch may hold, and how it is cut."""

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

    @property
    def fingerprint(self) -> str:
        """The same for the same body with the same options."""
        told = to_json([self.form, dict(sorted(self.options.items())), self.body.digest])
        return hashlib.sha256(told).hexdigest()


class BatchAdmission:
    """Admits batches to a store."""

    def __init__(self, engine: Engine, bounds: BatchBounds, receivers: Receivers | None = None) -> None:
        """`receivers` None: nobody may be told of the end of a batch."""
        self._engine = engine
        self._bounds = bounds
        self._receivers = receivers

    def take(self, sent: Upload, batches: Batches, cutter: Cutter) -> Batch | None:
        """The batch that is made, or was made under the same key; None for a dry run, whose items are in the cutter.

        Raises InputError for options that cannot be used, BadLinesError for items, and what `Batches.submit` raises.
        """
        given, entries = dict(sent.options), None
        if sent.form == "document":
            own, entries = self._read_document(sent.body)
            given |= own
        defaults = Defaults(given, self._engine)
        self._bounds.admit_spending(defaults.options)
        admit_webhook(defaults.options.webhook, self._receivers)
        if not defaults.options.dry_run and (earlier := _find_earlier(sent, batches)):
            return earlier
        pointer_of = point_to_line if entries is None else point_to_item
        intake = ItemIntake(defaults, cutter, max_items=self._bounds.max_items, pointer_of=pointer_of)
        left_out = intake.take(read_line_entries(sent.body.file, self._bounds.limits) if entries is None else entries)
        if defaults.options.dry_run:
            return None
        submission = self._build_submission(sent, defaults, left_out)
        if sent.key is None:  # an answer to COMMIT that gets lost must not make a second one of the next try
            submission = replace(submission, key=f"\n{token_hex(16)}")
        return insist(lambda: batches.submit(submission, cutter), give_up=PATIENCE)

    def _read_document(self, body: Spool) -> tuple[Mapping[str, JsonValue], list[Entry]]:
        try:
            return read_document_entries(body.file.read(), self._bounds.limits)
        except TooLargeError as error:
            raise explain_too_large(error) from None

    def _build_submission(self, sent: Upload, defaults: Defaults, left_out: SkippedItems) -> BatchSubmission:
        options = defaults.options
        return BatchSubmission(
            tenant=sent.tenant,
            key=sent.key,
            fingerprint=sent.fingerprint,
            name=options.name,
            options=defaults.given,
            tags=options.tags,
            budget_usd=self._bounds.choose_budget(options),
            max_questions=self._bounds.choose_max_questions(options),
            hours=options.deadline_hours or self._bounds.hours,
            webhook=options.webhook,
            left_out=left_out,
        )


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


def _find_earlier(sent: Upload, batches: Batches) -> Batch | None:
    key = sent.key
    if key is None:
        return None
    return insist(lambda: batches.find_submitted(sent.tenant, key, sent.fingerprint), give_up=PATIENCE)

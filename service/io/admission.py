"""Admitting what is submitted: from a body in a file to a batch in the database. For a thread: it takes the time it takes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Literal, Protocol

from pydantic import JsonValue
from pydantic_core import to_json

from service.errors import InputError, TooLargeError
from service.io.chunking import Cutter
from service.io.engine import Engine
from service.io.jsonbody import Limits
from service.io.spool import Spool
from service.io.store.batch import Batch, LeftOut
from service.io.store.batches import Batches, Submission
from service.io.store.database import insisting
from service.io.submissions import (
    Defaults,
    Entry,
    Intake,
    by_item,
    by_line,
    entries_of_document,
    entries_of_lines,
)

PATIENCE = 10.0
"""Seconds for which a database that is out of reach is tried."""


class Receivers(Protocol):
    """Who may be told of the end of a batch."""

    def admit(self, url: str) -> None:
        """InputError at /webhook for a URL that is not allowed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a batch may hold, and how it is cut."""

    limits: Limits
    """Of each item, and of a whole document."""
    chunk: int
    """Items in a chunk."""
    max_items: int
    hours: float
    """Time for a batch that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
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


class Admission:
    """Admits batches to a store."""

    def __init__(self, engine: Engine, bounds: Bounds, receivers: Receivers | None = None) -> None:
        """`receivers` None: nobody may be told of the end of a batch."""
        self._engine = engine
        self._bounds = bounds
        self._receivers = receivers

    def take(self, sent: Sent, batches: Batches, cutter: Cutter) -> Batch | None:
        """The batch that is made, or was made under the same key; None for a dry run, whose items are in the cutter.

        Raises InputError for options that cannot be used, BadLinesError for items, and what `Batches.submit` raises.
        """
        given, entries = dict(sent.options), None
        if sent.form == "document":
            own, entries = self._document(sent.body)
            given |= own
        defaults = Defaults(given, self._engine)
        admit_webhook(defaults.options.webhook, self._receivers)
        if not defaults.options.dry_run and (earlier := _earlier(sent, batches)):
            return earlier
        pointer_of = by_line if entries is None else by_item
        intake = Intake(defaults, cutter, max_items=self._bounds.max_items, pointer_of=pointer_of)
        left_out = intake.take(entries_of_lines(sent.body.file, self._bounds.limits) if entries is None else entries)
        if defaults.options.dry_run:
            return None
        submission = self._submission(sent, defaults, left_out)
        if sent.key is None:  # an answer to COMMIT that gets lost must not make a second one of the next try
            submission = replace(submission, key=f"\n{token_hex(16)}")
        return insisting(lambda: batches.submit(submission, cutter), give_up=PATIENCE)

    def _document(self, body: Spool) -> tuple[Mapping[str, JsonValue], list[Entry]]:
        try:
            return entries_of_document(body.file.read(), self._bounds.limits)
        except TooLargeError as error:
            raise too_large(error) from None

    def _submission(self, sent: Sent, defaults: Defaults, left_out: LeftOut) -> Submission:
        options = defaults.options
        return Submission(
            tenant=sent.tenant,
            key=sent.key,
            fingerprint=sent.fingerprint,
            name=options.name,
            options=defaults.given,
            tags=options.tags,
            budget_usd=options.budget_usd,
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


def too_large(error: TooLargeError) -> InputError:
    """The error of a document that passes a limit, with what to do about it where it is too large as a whole."""
    if any(one.path for one in error.problems):
        return error
    told = "; ".join(one.message for one in error.problems)
    return TooLargeError.at("", f"{told}; larger batches are sent as JSON Lines (application/x-ndjson)")


def _earlier(sent: Sent, batches: Batches) -> Batch | None:
    key = sent.key
    if key is None:
        return None
    return insisting(lambda: batches.submitted(sent.tenant, key, sent.fingerprint), give_up=PATIENCE)

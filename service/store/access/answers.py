"""Stored answers, which are returned again if the same request comes again under its Idempotency-Key."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa

from service.errors import KeyBusyError, KeyReusedError
from service.store.access.keyed import claim, hash_key
from service.store.database import Database
from service.store.tables import ANSWERS

KEPT_S = 86_400.0
"""Seconds for which an answer is returned again."""

CLAIM_S = 900.0
"""Seconds after which a request that gave no answer counts as lost."""

MAX_KEPT_BYTES = 2**20
"""Largest answer that is stored, deflated."""

MAX_KEYS = 1_000
"""Most keys kept per tenant; the oldest go first."""


class KeyedRequest(NamedTuple):
    """A request that came under a key."""

    tenant: str
    key: str
    fingerprint: str
    """Identifies its content."""
    claim: str
    """Tells it from another request with the same key and content."""


class StoredAnswer(NamedTuple):
    """The answer to a request."""

    headers: Mapping[str, str]
    body: bytes


class Answers:
    """The answers in a database. Every method blocks on the database, so call it in a thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, request: KeyedRequest) -> StoredAnswer | None:
        """Return the stored answer; None if there is none: then the key now belongs to this request.

        Raises KeyReusedError if the key stands for something else, KeyBusyError if another request is working on the answer.
        """
        with self._database.begin() as connection:
            now: float = connection.execute(sa.select(self._database.now())).scalar_one()
            self._forget(connection, request.tenant, now)
            row = {"tenant": request.tenant, "key_hash": hash_key(request.key), "fingerprint": request.fingerprint}
            if claim(self._database, connection, ANSWERS, row | {"claim": request.claim, "claimed_at": now}):
                return None
            found = connection.execute(sa.select(ANSWERS).where(*_match_request(request)).with_for_update()).one()
            if found.fingerprint != request.fingerprint:
                raise KeyReusedError("the Idempotency-Key was used for another body")
            if found.body is not None:
                return StoredAnswer(json.loads(found.headers), zlib.decompress(found.body))
            if found.claim != request.claim:
                raise KeyBusyError(
                    "a request with this Idempotency-Key is being worked on; ask again when it has ended"
                )
            return None

    def keep(self, request: KeyedRequest, answer: StoredAnswer) -> None:
        """Store the answer, unless it is too large: then release the key."""
        body = zlib.compress(answer.body, 1)
        if len(body) > MAX_KEPT_BYTES:
            self.drop(request)
            return
        values = {"headers": json.dumps(dict(answer.headers)), "body": body}
        with self._database.begin() as connection:
            connection.execute(
                sa.update(ANSWERS).where(*_match_request(request), ANSWERS.c.claim == request.claim).values(values)
            )

    def drop(self, request: KeyedRequest) -> None:
        """Release the key: the request gave no answer."""
        mine = ANSWERS.c.claim == request.claim, ANSWERS.c.body.is_(None)
        with self._database.begin() as connection:
            connection.execute(sa.delete(ANSWERS).where(*_match_request(request), *mine))

    def forget_old(self) -> None:
        """Delete the answers of all tenants that are too old to be returned."""
        with self._database.begin() as connection:
            connection.execute(sa.delete(ANSWERS).where(ANSWERS.c.claimed_at < self._database.now() - KEPT_S))

    def _forget(self, connection: sa.Connection, tenant: str, now: float) -> None:
        """Delete a tenant's old answers, lost claims, and any surplus over MAX_KEYS."""
        mine = ANSWERS.c.tenant == tenant
        newest = sa.select(ANSWERS.c.claimed_at).where(mine).order_by(ANSWERS.c.claimed_at.desc())
        first = connection.execute(newest.offset(MAX_KEYS - 1).limit(1)).scalar_one_or_none()
        lost = ANSWERS.c.body.is_(None) & (ANSWERS.c.claimed_at < now - CLAIM_S)
        surplus = sa.false() if first is None else ANSWERS.c.body.is_not(None) & (ANSWERS.c.claimed_at <= first)
        old = ANSWERS.c.claimed_at < now - KEPT_S
        connection.execute(sa.delete(ANSWERS).where(mine, old | lost | surplus))


def _match_request(request: KeyedRequest) -> tuple[sa.ColumnElement[bool], ...]:
    return ANSWERS.c.tenant == request.tenant, ANSWERS.c.key_hash == hash_key(request.key)

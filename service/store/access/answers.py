"""Answers that are given again where the same request comes again under its Idempotency-Key."""

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
"""Seconds for which an answer is given again."""

CLAIM_S = 900.0
"""Seconds after which a request that was begun and gave no answer is taken for lost."""

MAX_KEPT_BYTES = 2**20
"""Largest answer that is kept, deflated."""

MAX_KEYS = 1_000
"""Keys of one tenant that are known at most; the oldest go first."""


class KeyedRequest(NamedTuple):
    """A request that came under a key."""

    tenant: str
    key: str
    fingerprint: str
    """What tells its content from another's."""
    claim: str
    """What tells it from another one with the same key and content."""


class StoredAnswer(NamedTuple):
    """What a request was answered with."""

    headers: Mapping[str, str]
    body: bytes


class Answers:
    """The answers in a database. All of it waits for the database, and so belongs into a thread."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, asked: KeyedRequest) -> StoredAnswer | None:
        """The answer that there is; None where there is none: then the key is this request's.

        KeyReusedError where the key stands for something else, KeyBusyError where another request works on the answer.
        """
        with self._database.begin() as connection:
            now: float = connection.execute(sa.select(self._database.now())).scalar_one()
            self._forget(connection, asked.tenant, now)
            row = {"tenant": asked.tenant, "key_hash": hash_key(asked.key), "fingerprint": asked.fingerprint}
            if claim(self._database, connection, ANSWERS, row | {"claim": asked.claim, "claimed_at": now}):
                return None
            found = connection.execute(sa.select(ANSWERS).where(*_match_request(asked)).with_for_update()).one()
            if found.fingerprint != asked.fingerprint:
                raise KeyReusedError("the Idempotency-Key was used for another body")
            if found.body is not None:
                return StoredAnswer(json.loads(found.headers), zlib.decompress(found.body))
            if found.claim != asked.claim:
                raise KeyBusyError(
                    "a request with this Idempotency-Key is being worked on; ask again when it has ended"
                )
            return None

    def keep(self, asked: KeyedRequest, answer: StoredAnswer) -> None:
        """Keeps the answer, unless it is too large: then the key is free again."""
        body = zlib.compress(answer.body, 1)
        if len(body) > MAX_KEPT_BYTES:
            self.drop(asked)
            return
        values = {"headers": json.dumps(dict(answer.headers)), "body": body}
        with self._database.begin() as connection:
            connection.execute(
                sa.update(ANSWERS).where(*_match_request(asked), ANSWERS.c.claim == asked.claim).values(values)
            )

    def drop(self, asked: KeyedRequest) -> None:
        """No answer came of the request: the key is free again."""
        mine = ANSWERS.c.claim == asked.claim, ANSWERS.c.body.is_(None)
        with self._database.begin() as connection:
            connection.execute(sa.delete(ANSWERS).where(*_match_request(asked), *mine))

    def forget_old(self) -> None:
        """Deletes what is too old to be given again, of all tenants."""
        with self._database.begin() as connection:
            connection.execute(sa.delete(ANSWERS).where(ANSWERS.c.claimed_at < self._database.now() - KEPT_S))

    def _forget(self, connection: sa.Connection, tenant: str, now: float) -> None:
        """Deletes what is too old of a tenant, what was lost, and what is too much with another one."""
        mine = ANSWERS.c.tenant == tenant
        newest = sa.select(ANSWERS.c.claimed_at).where(mine).order_by(ANSWERS.c.claimed_at.desc())
        first = connection.execute(newest.offset(MAX_KEYS - 1).limit(1)).scalar_one_or_none()
        lost = ANSWERS.c.body.is_(None) & (ANSWERS.c.claimed_at < now - CLAIM_S)
        surplus = sa.false() if first is None else ANSWERS.c.body.is_not(None) & (ANSWERS.c.claimed_at <= first)
        old = ANSWERS.c.claimed_at < now - KEPT_S
        connection.execute(sa.delete(ANSWERS).where(mine, old | lost | surplus))


def _match_request(asked: KeyedRequest) -> tuple[sa.ColumnElement[bool], ...]:
    return ANSWERS.c.tenant == asked.tenant, ANSWERS.c.key_hash == hash_key(asked.key)

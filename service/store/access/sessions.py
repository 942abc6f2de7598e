"""Sessions on the pages. The browser keeps 256 random bits; the store keeps their sha256.

A session carries the rights of its key, and ends when its time is over or its key ends.
"""

from __future__ import annotations

import secrets
from hashlib import sha256

import sqlalchemy as sa

from service.store.access.audit import SERVICE, Actor, record
from service.store.access.keys import NAMELESS, PATIENCE_S, Caller, Keys
from service.store.database import Database, insist
from service.store.tables import SESSIONS

SESSION_S = 43_200.0
"""Default seconds until somebody must sign in again: half a day."""


class Sessions:
    """The sessions in a database. Safe to share between threads. Looked up like keys (`KeyCache`)."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._keys = Keys(database)
        self.any_key = self._keys.any_key

    def create(self, key_id: str, *, lasts_s: float = SESSION_S, by: Actor = SERVICE) -> str:
        """Create a session for a key id ("" for none), and return the browser's token. Deletes expired sessions.

        `by`: the actor in the audit log.
        """
        token, now = secrets.token_urlsafe(32), self._database.now()
        values = {"hash": _hash_token(token), "key_id": key_id, "expires_at": now + lasts_s}
        with self._database.begin() as connection:
            connection.execute(SESSIONS.delete().where(SESSIONS.c.expires_at <= now))
            connection.execute(SESSIONS.insert().values(values))
            record(connection, by, "session.create", target=key_id)
        return token

    def authenticate(self, text: str) -> Caller | None:
        """Return who is signed in; None if nobody is, or no longer. A session without a key ends once there is a key."""
        own = (SESSIONS.c.hash == _hash_token(text), SESSIONS.c.expires_at > self._database.now())
        found = insist(lambda: self._database.read_column(sa.select(SESSIONS.c.key_id).where(*own)), give_up=PATIENCE_S)
        if not found:
            return None
        [key_id] = found
        if not key_id:
            return None if self.any_key() else NAMELESS
        return insist(lambda: self._keys.find_caller(key_id), give_up=PATIENCE_S)

    def end(self, text: str, *, by: Actor = SERVICE) -> None:
        """Sign somebody out. `by`: the actor in the audit log."""
        own = SESSIONS.c.hash == _hash_token(text)
        with self._database.begin() as connection:
            key_id = connection.execute(sa.select(SESSIONS.c.key_id).where(own)).scalar_one_or_none()
            if key_id is not None:
                connection.execute(SESSIONS.delete().where(own))
                record(connection, by, "session.end", target=key_id)

    def note_use(self, key_id: str) -> None:
        """Record that a key is used, if there is one."""
        if key_id:
            self._keys.note_use(key_id)


def _hash_token(token: str) -> str:
    return sha256(token.encode()).hexdigest()

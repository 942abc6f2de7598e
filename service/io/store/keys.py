"""Keys of callers. Their text is `cg_<id>_<secret>`; what is kept of the secret is its sha256.

The secret has 256 bits of chance, so a plain digest is as good as a slow one: nobody can try them all.
"""

from __future__ import annotations

import hmac
import re
import secrets
import string
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256

import sqlalchemy as sa

from service.errors import Problem, SettingsError
from service.io.store.callers import NAMELESS, SCOPES, Caller, Scope
from service.io.store.database import Database, insisting
from service.io.store.tables import BATCHES, KEYS, SUBMISSIONS

PATIENCE = 2.0
"""Seconds for which a database that is out of reach is asked again before a caller is told to come back."""

DAY = 86_400.0

_TEXT = re.compile(r"cg_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NOBODY = "0" * 64


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it is kept, without its secret. Times are seconds since 1970 by the database's clock."""

    id: str
    tenant: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: float
    expires_at: float | None
    revoked_at: float | None


class Keys:
    """The keys in a database. Safe to share between threads.

    What a process asks for a caller (`authenticate`, `any_key`) raises BusyError where the database cannot be reached.
    """

    def __init__(self, database: Database, *, patience: float = PATIENCE) -> None:
        self._database = database
        self._patience = patience

    def create(
        self,
        *,
        name: str,
        tenant: str = "default",
        scopes: Collection[str] = ("score", "batch"),
        days: int | None = None,
    ) -> tuple[Key, str]:
        """A new key with its text, which nobody can find out again. It expires after `days`, or never.

        What was submitted before there was any key is from the first one on its tenant's. SettingsError naming what cannot
        be used.
        """
        _refuse(name, tenant, scopes)
        with self._database.begin() as connection:
            if not _found_any(connection):
                _adopt(connection, tenant)
            return self._inserted(connection, name, tenant, scopes, days)

    def create_first(self) -> tuple[Key, str] | None:
        """A key that may do everything, where there is none yet. However many ask at once, one of them gets it."""
        with self._database.begin() as connection:
            if not self._database.is_sqlite:
                connection.execute(sa.text(f"LOCK TABLE {KEYS.name} IN SHARE ROW EXCLUSIVE MODE"))
            if _found_any(connection):
                return None
            _adopt(connection, "default")
            return self._inserted(connection, "first", "default", ("admin",), None)

    def listed(self) -> list[Key]:
        """All keys, the oldest first, with those that have expired or were revoked."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(KEYS).order_by(KEYS.c.created_at, KEYS.c.id)).mappings()
            return [_key(row) for row in rows]

    def revoke(self, key_id: str) -> bool:
        """From now on the key is worth nothing; False where there is no such key. The first revocation stays."""
        now = sa.func.coalesce(KEYS.c.revoked_at, self._database.now())
        with self._database.begin() as connection:
            done = connection.execute(KEYS.update().where(KEYS.c.id == key_id).values(revoked_at=now))
            return done.rowcount == 1

    def any_key(self) -> bool:
        """Whether there ever was one: keys that have expired or were revoked count, lest the last one's end open the doors."""

        def look() -> bool:
            with self._database.read() as connection:
                return _found_any(connection)

        return insisting(look, give_up=self._patience)

    def authenticate(self, text: str) -> Caller | None:
        """Whose key this is; None for one that is unknown, wrong, expired or revoked. An unknown id takes as long."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        row = insisting(lambda: self._row(found[1]), give_up=self._patience)
        same = hmac.compare_digest(_digest(found[2]), _NOBODY if row is None else row["hash"])
        if row is None or not same or not row["live"]:
            return None
        return Caller(row["tenant"], found[1], frozenset(_scopes(row["scopes"])))

    def _row(self, key_id: str) -> sa.RowMapping | None:
        lasts = sa.or_(KEYS.c.expires_at.is_(None), KEYS.c.expires_at > self._database.now())
        live = sa.and_(KEYS.c.revoked_at.is_(None), lasts).label("live")
        look = sa.select(KEYS.c.tenant, KEYS.c.hash, KEYS.c.scopes, live).where(KEYS.c.id == key_id)
        with self._database.read() as connection:
            return connection.execute(look).mappings().one_or_none()

    def _inserted(
        self, connection: sa.Connection, name: str, tenant: str, scopes: Collection[str], days: int | None
    ) -> tuple[Key, str]:
        key_id = "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(12))
        secret, now = secrets.token_urlsafe(32), self._database.now()
        row = KEYS.insert().values(
            id=key_id,
            tenant=tenant,
            name=name,
            hash=_digest(secret),
            scopes=" ".join(one for one in SCOPES if one in scopes),
            created_at=now,
            expires_at=None if days is None else now + days * DAY,
        )
        made = connection.execute(row.returning(*KEYS.c)).mappings().one()
        return _key(made), f"cg_{key_id}_{secret}"


def _refuse(name: str, tenant: str, scopes: Collection[str]) -> None:
    problems: list[Problem] = []
    if not (name.isprintable() and 1 <= len(name) <= 200):
        problems.append(Problem("name", "expected 1 to 200 printable characters"))
    if not _TENANT.fullmatch(tenant):
        problems.append(Problem("tenant", "expected 1 to 64 of A-Z a-z 0-9 . _ -, a letter or digit first"))
    if not scopes or not set(scopes) <= set(SCOPES):
        problems.append(Problem("scope", f"expected some of {', '.join(SCOPES)}"))
    if problems:
        raise SettingsError(problems)


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _found_any(connection: sa.Connection) -> bool:
    return connection.execute(sa.select(KEYS.c.id).limit(1)).first() is not None


def _adopt(connection: sa.Connection, tenant: str) -> None:
    """What nobody's tenant has submitted becomes a tenant's: with keys about nobody could look at it any more."""
    for table in (BATCHES, SUBMISSIONS):
        connection.execute(table.update().where(table.c.tenant == NAMELESS.tenant).values(tenant=tenant))


def _scopes(text: str) -> Sequence[Scope]:
    """Those that this version knows."""
    held = text.split()
    return [one for one in SCOPES if one in held]


def _key(kept: sa.RowMapping) -> Key:
    return Key(
        id=kept["id"],
        tenant=kept["tenant"],
        name=kept["name"],
        scopes=tuple(_scopes(kept["scopes"])),
        created_at=kept["created_at"],
        expires_at=kept["expires_at"],
        revoked_at=kept["revoked_at"],
    )

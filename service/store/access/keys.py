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
from pydantic import JsonValue

from service.errors import Problem, SettingsError
from service.store.access.audit import SERVICE, Act, Actor, record
from service.store.access.callers import NAMELESS, SCOPES, Caller, Scope
from service.store.database import Database, insist
from service.store.labelling.labels import adopt_labels
from service.store.tables import BATCHES, KEYS, SUBMISSIONS

PATIENCE = 2.0
"""Seconds for which a database that is out of reach is asked again before a caller is told to come back."""

OVERLAP_S = 86_400.0
"""Seconds for which a key that was replaced goes on to open what it opened, where nothing else is said."""

USE_S = 60.0
"""Seconds for which the last use of a key stands as it is: no key is written more often."""

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
    used_at: float | None = None
    """True to the minute."""
    replaced_by: str | None = None
    """The id of the key that was made in its place."""


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
        lasts_s: float | None = None,
        by: Actor = SERVICE,
    ) -> tuple[Key, str]:
        """A new key with its text, which nobody can find out again. It expires after `lasts_s` seconds, or never.

        What was submitted before there was any key is from the first one on its tenant's. SettingsError naming what cannot
        be used.
        """
        _refuse(name, tenant, scopes)
        with self._database.begin() as connection:
            if not _has_any(connection):
                _adopt(connection, tenant)
            made = self._insert(connection, name, tenant, scopes, lasts_s)
            self._record(connection, by, "key.create", made[0])
            return made

    def create_first(self) -> tuple[Key, str] | None:
        """A key that may do everything, where there is none yet. However many ask at once, one of them gets it."""
        with self._database.begin() as connection:
            if not self._database.is_sqlite:
                connection.execute(sa.text(f"LOCK TABLE {KEYS.name} IN SHARE ROW EXCLUSIVE MODE"))
            if _has_any(connection):
                return None
            _adopt(connection, "default")
            made = self._insert(connection, "first", "default", ("admin",), None)
            self._record(connection, SERVICE, "key.create", made[0])
            return made

    def rotate(
        self, key_id: str, *, overlap_s: float = OVERLAP_S, lasts_s: float | None = None, by: Actor = SERVICE
    ) -> tuple[Key, str] | None:
        """A new key in the place of one, which ends after `overlap_s` seconds; until then both hold. None: no such key.

        The new one is of the same name, tenant and scopes. It expires after `lasts_s` seconds; where that is not given it
        lasts as long as the old one was to last. SettingsError for a key that has ended or was replaced already.
        """
        with self._database.begin() as connection:
            row = self._lock_row(connection, key_id)
            if row is None:
                return None
            old = _build_key(row)
            _refuse_to_rotate(old, live=row["live"])
            if lasts_s is None and old.expires_at is not None:
                lasts_s = old.expires_at - old.created_at
            made = self._insert(connection, old.name, old.tenant, old.scopes, lasts_s)
            ends = self._database.now() + overlap_s
            sooner = sa.case((KEYS.c.expires_at < ends, KEYS.c.expires_at), else_=ends)
            connection.execute(
                KEYS.update().where(KEYS.c.id == key_id).values(expires_at=sooner, replaced_by=made[0].id)
            )
            self._record(connection, by, "key.rotate", old, replaced_by=made[0].id, overlap_s=overlap_s)
            return made

    def list_keys(self) -> list[Key]:
        """All keys, the oldest first, with those that have expired or were revoked."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(KEYS).order_by(KEYS.c.created_at, KEYS.c.id)).mappings()
            return [_build_key(row) for row in rows]

    def revoke(self, key_id: str, *, by: Actor = SERVICE) -> bool:
        """From now on the key is worth nothing; False where there is no such key. The first revocation stays."""
        with self._database.begin() as connection:
            row = self._lock_row(connection, key_id)
            if row is not None and row["revoked_at"] is None:
                ended = KEYS.update().where(KEYS.c.id == key_id).values(revoked_at=self._database.now())
                connection.execute(ended)
                self._record(connection, by, "key.revoke", _build_key(row))
            return row is not None

    def note_use(self, key_id: str) -> None:
        """Keeps that a key is used, unless that was kept less than `USE_S` seconds ago."""
        now = self._database.now()
        due = sa.or_(KEYS.c.used_at.is_(None), KEYS.c.used_at <= now - USE_S)
        with self._database.begin() as connection:
            connection.execute(KEYS.update().where(KEYS.c.id == key_id, due).values(used_at=now))

    def any_key(self) -> bool:
        """Whether there ever was one: keys that have expired or were revoked count, lest the last one's end open the doors."""

        def look() -> bool:
            with self._database.read() as connection:
                return _has_any(connection)

        return insist(look, give_up=self._patience)

    def authenticate(self, text: str) -> Caller | None:
        """Whose key this is; None for one that is unknown, wrong, expired or revoked. An unknown id takes as long."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        row = insist(lambda: self._read_row(found[1]), give_up=self._patience)
        same = hmac.compare_digest(_hash_secret(found[2]), _NOBODY if row is None else row["hash"])
        if row is None or not same or not row["live"]:
            return None
        return Caller(row["tenant"], found[1], frozenset(_parse_scopes(row["scopes"])))

    def find_caller(self, key_id: str) -> Caller | None:
        """Whose key an id is of; None for one that is unknown, expired or revoked."""
        row = self._read_row(key_id)
        if row is None or not row["live"]:
            return None
        return Caller(row["tenant"], key_id, frozenset(_parse_scopes(row["scopes"])))

    def _read_row(self, key_id: str) -> sa.RowMapping | None:
        look = sa.select(KEYS.c.tenant, KEYS.c.hash, KEYS.c.scopes, self._select_live()).where(KEYS.c.id == key_id)
        with self._database.read() as connection:
            return connection.execute(look).mappings().one_or_none()

    def _lock_row(self, connection: sa.Connection, key_id: str) -> sa.RowMapping | None:
        """The whole key, held so that nobody else changes it."""
        look = sa.select(KEYS, self._select_live()).where(KEYS.c.id == key_id).with_for_update()
        return connection.execute(look).mappings().one_or_none()

    def _select_live(self) -> sa.Label[bool]:
        """Whether a key has neither expired nor been revoked."""
        lasts = sa.or_(KEYS.c.expires_at.is_(None), KEYS.c.expires_at > self._database.now())
        return sa.and_(KEYS.c.revoked_at.is_(None), lasts).label("live")

    def _record(self, connection: sa.Connection, by: Actor, act: Act, key: Key, **detail: JsonValue) -> None:
        found: dict[str, JsonValue] = {"name": key.name, "scopes": list(key.scopes)}
        now = self._database.now()
        record(connection, now, by, act, target=key.id, tenant=key.tenant, detail=found | detail)

    def _insert(
        self, connection: sa.Connection, name: str, tenant: str, scopes: Collection[str], lasts_s: float | None
    ) -> tuple[Key, str]:
        key_id = "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(12))
        secret, now = secrets.token_urlsafe(32), self._database.now()
        row = KEYS.insert().values(
            id=key_id,
            tenant=tenant,
            name=name,
            hash=_hash_secret(secret),
            scopes=" ".join(one for one in SCOPES if one in scopes),
            created_at=now,
            expires_at=None if lasts_s is None else now + lasts_s,
        )
        made = connection.execute(row.returning(*KEYS.c)).mappings().one()
        return _build_key(made), f"cg_{key_id}_{secret}"


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


def _refuse_to_rotate(key: Key, *, live: bool) -> None:
    if key.replaced_by is not None:
        raise SettingsError.at("key", f"{key.id} was replaced by {key.replaced_by}; expected one that still stands")
    if not live:
        raise SettingsError.at("key", f"{key.id} has ended; expected one that holds: make another with `keys create`")


def _hash_secret(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _has_any(connection: sa.Connection) -> bool:
    return connection.execute(sa.select(KEYS.c.id).limit(1)).first() is not None


def _adopt(connection: sa.Connection, tenant: str) -> None:
    """What nobody's tenant has submitted becomes a tenant's: with keys about nobody could look at it any more."""
    for table in (BATCHES, SUBMISSIONS):
        connection.execute(table.update().where(table.c.tenant == NAMELESS.tenant).values(tenant=tenant))
    adopt_labels(connection, NAMELESS.tenant, tenant)


def _parse_scopes(text: str) -> Sequence[Scope]:
    """Those that this version knows."""
    held = text.split()
    return [one for one in SCOPES if one in held]


def _build_key(kept: sa.RowMapping) -> Key:
    return Key(
        id=kept["id"],
        tenant=kept["tenant"],
        name=kept["name"],
        scopes=tuple(_parse_scopes(kept["scopes"])),
        created_at=kept["created_at"],
        expires_at=kept["expires_at"],
        revoked_at=kept["revoked_at"],
        used_at=kept["used_at"],
        replaced_by=kept["replaced_by"],
    )

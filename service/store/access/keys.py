"""API keys. Their text is `cg_<id>_<secret>`; the store keeps the sha256 of the secret.

The secret has 256 random bits, so a plain digest is as good as a slow one: nobody can try them all.
"""

from __future__ import annotations

import hmac
import re
import secrets
import string
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, get_args

import sqlalchemy as sa
from pydantic import JsonValue

from service.errors import Problem, SettingsError
from service.store.access.audit import SERVICE, Act, Actor, record
from service.store.database import Database, build_from_row, insist
from service.store.tables import BATCHES, KEYS, LABEL_ITEMS, SCORES, SUBMISSIONS

Scope = Literal["score", "batch", "calibrate", "label", "metrics", "admin"]
"""What a key is for: scoring and rubrics, batches, calibrations, labels, /metrics, and everything with the audit log."""

SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. `tenant` separates what belongs to them: batches, cached judgements, limits."""

    tenant: str
    key_id: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope | None) -> bool:
        """Whether the caller may do what needs this scope; None needs none.

        >>> Caller("t", "k", frozenset({"score"})).may("batch"), Caller("t", "k", frozenset({"admin"})).may("batch")
        (False, True)
        """
        return scope is None or scope in self.scopes or "admin" in self.scopes


NAMELESS = Caller("", "", frozenset({"admin"}))
"""The caller where no keys exist. No key has this tenant."""

UNKNOWN = Caller("", "", frozenset())
"""A visitor to the pages who is not signed in, and may do nothing."""


PATIENCE_S = 2.0
"""Seconds to keep trying a database that is out of reach before telling a caller to come back."""

OVERLAP_S = 86_400.0
"""Default seconds for which a replaced key stays valid."""

USE_S = 60.0
"""Seconds between updates of a key's last use."""

_TEXT = re.compile(r"cg_([a-z0-9]{12})_([A-Za-z0-9_-]{43})")
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NO_HASH = "0" * 64


@dataclass(frozen=True, slots=True)
class Key:
    """A key as stored, without its secret. Times are seconds since 1970 by the database's clock."""

    id: str
    tenant: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    used_at: float | None = None
    """Accurate to the minute."""
    replaced_by: str | None = None
    """The id of the key that replaced it."""


class Keys:
    """The keys in a database. Safe to share between threads.

    The lookups made for a caller (`authenticate`, `any_key`) raise BusyError if the database cannot be reached.
    """

    def __init__(self, database: Database, *, patience: float = PATIENCE_S) -> None:
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
        """Create a key; return it and its text, which cannot be recovered later. It expires after `lasts_s` seconds, or never.

        The tenant of the first key inherits what was submitted before there was any. Raises SettingsError naming the unusable
        values.
        """
        _refuse(name, tenant, scopes)
        with self._database.begin() as connection:
            if not _has_any(connection):
                _adopt(connection, tenant)
            created = self._insert(connection, name, tenant, scopes, lasts_s)
            _record(connection, by, "key.create", created[0])
            return created

    def create_first(self) -> tuple[Key, str] | None:
        """Create a key that may do everything, if there is no key yet. Of many simultaneous callers only one gets it."""
        with self._database.begin() as connection:
            if not self._database.is_sqlite:
                connection.execute(sa.text(f"LOCK TABLE {KEYS.name} IN SHARE ROW EXCLUSIVE MODE"))
            if _has_any(connection):
                return None
            _adopt(connection, "default")
            created = self._insert(connection, "first", "default", ("admin",), None)
            _record(connection, SERVICE, "key.create", created[0])
            return created

    def rotate(
        self, key_id: str, *, overlap_s: float = OVERLAP_S, lasts_s: float | None = None, by: Actor = SERVICE
    ) -> tuple[Key, str] | None:
        """Replace a key: the old one expires after `overlap_s` seconds, and until then both are valid. None: no such key.

        The new one has the same name, tenant and scopes. It expires after `lasts_s` seconds, by default after the lifetime that
        the old one was given. Raises SettingsError for a key that has ended or was already replaced.
        """
        with self._database.begin() as connection:
            row = connection.execute(self._select_key(key_id).with_for_update()).mappings().one_or_none()
            if row is None:
                return None
            old = _build_key(row)
            if old.replaced_by is not None:
                message = f"{key_id} was replaced by {old.replaced_by}; expected one that still stands"
                raise SettingsError.at("key", message)
            if not row["live"]:
                message = f"{key_id} has ended; expected one that holds: make another with `keys create`"
                raise SettingsError.at("key", message)
            if lasts_s is None and old.expires_at is not None:
                lasts_s = old.expires_at - old.created_at
            created = self._insert(connection, old.name, old.tenant, old.scopes, lasts_s)
            ends = self._database.now() + overlap_s
            sooner = sa.case((KEYS.c.expires_at < ends, KEYS.c.expires_at), else_=ends)
            values = {"expires_at": sooner, "replaced_by": created[0].id}
            connection.execute(KEYS.update().where(KEYS.c.id == key_id).values(values))
            _record(connection, by, "key.rotate", old, replaced_by=created[0].id, overlap_s=overlap_s)
            return created

    def list_keys(self) -> list[Key]:
        """List all keys, the oldest first, including expired and revoked ones."""
        return [
            _build_key(row) for row in self._database.read_rows(sa.select(KEYS).order_by(KEYS.c.created_at, KEYS.c.id))
        ]

    def revoke(self, key_id: str, *, by: Actor = SERVICE) -> bool:
        """Revoke a key, effective at once; False if there is no such key. A second revocation changes nothing."""
        with self._database.begin() as connection:
            row = connection.execute(self._select_key(key_id).with_for_update()).mappings().one_or_none()
            if row is not None and row["revoked_at"] is None:
                ended = KEYS.update().where(KEYS.c.id == key_id).values(revoked_at=self._database.now())
                connection.execute(ended)
                _record(connection, by, "key.revoke", _build_key(row))
            return row is not None

    def note_use(self, key_id: str) -> None:
        """Record that a key is used, unless that was recorded less than `USE_S` seconds ago."""
        now = self._database.now()
        due = sa.or_(KEYS.c.used_at.is_(None), KEYS.c.used_at <= now - USE_S)
        self._database.change(KEYS.update().where(KEYS.c.id == key_id, due).values(used_at=now))

    def any_key(self) -> bool:
        """Whether there ever was a key: expired and revoked ones count, or the end of the last key would open all doors."""
        some = sa.select(KEYS.c.id).limit(1)
        return insist(lambda: self._database.read_row(some), give_up=self._patience) is not None

    def authenticate(self, text: str) -> Caller | None:
        """Return whose key this is; None if it is unknown, wrong, expired or revoked. An unknown id takes as long."""
        match = _TEXT.fullmatch(text)
        if match is None:
            return None
        row = insist(lambda: self._database.read_row(self._select_key(match[1])), give_up=self._patience)
        same = hmac.compare_digest(_hash_secret(match[2]), _NO_HASH if row is None else row["hash"])
        return _build_caller(row) if same else None

    def find_caller(self, key_id: str) -> Caller | None:
        """Return whose key an id belongs to; None if it is unknown, expired or revoked."""
        return _build_caller(self._database.read_row(self._select_key(key_id)))

    def _select_key(self, key_id: str) -> sa.Select[Any]:
        """Select a key, with whether it is `live`: neither expired nor revoked."""
        lasts = sa.or_(KEYS.c.expires_at.is_(None), KEYS.c.expires_at > self._database.now())
        return sa.select(KEYS, sa.and_(KEYS.c.revoked_at.is_(None), lasts).label("live")).where(KEYS.c.id == key_id)

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
        created = connection.execute(row.returning(*KEYS.c)).mappings().one()
        return _build_key(created), f"cg_{key_id}_{secret}"


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


def _hash_secret(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _has_any(connection: sa.Connection) -> bool:
    return connection.execute(sa.select(KEYS.c.id).limit(1)).first() is not None


def _adopt(connection: sa.Connection, tenant: str) -> None:
    """Give a tenant what was submitted without keys: once there are keys, nobody else could reach it."""
    for table in (BATCHES, SUBMISSIONS, SCORES, LABEL_ITEMS):  # the labels of an item follow it
        connection.execute(table.update().where(table.c.tenant == NAMELESS.tenant).values(tenant=tenant))


def _parse_scopes(text: str) -> tuple[Scope, ...]:
    names = text.split()
    return tuple([one for one in SCOPES if one in names])


def _build_key(row: sa.RowMapping) -> Key:
    return build_from_row(Key, row, scopes=_parse_scopes(row["scopes"]))


def _build_caller(row: sa.RowMapping | None) -> Caller | None:
    """Build the caller from the row of a key; None if there is none, or it has ended."""
    if row is None or not row["live"]:
        return None
    return Caller(row["tenant"], row["id"], frozenset(_parse_scopes(row["scopes"])))


def _record(connection: sa.Connection, by: Actor, act: Act, key: Key, **detail: JsonValue) -> None:
    record(connection, by, act, target=key.id, tenant=key.tenant, name=key.name, scopes=list(key.scopes), **detail)

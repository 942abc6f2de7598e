"""Keys: what they open, what is kept of them, and whose first one is whose, on every database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from service.errors import BusyError, SettingsError
from service.settings import Settings
from service.store.access.keys import SCOPES, USE_S, Caller, Keys
from service.store.database import Database, open_database
from service.store.tables import KEYS
from service.wiring import build_database, build_engine, prepare_database

DAY = 86_400.0


@pytest.fixture
def keys(database: Database) -> Keys:
    return Keys(database)


def test_a_key_tells_whose_it_is(keys: Keys) -> None:
    key, text = keys.create(name="ci", tenant="acme", scopes=["batch", "score"])
    other, another = keys.create(name="ops", scopes=["admin"], lasts_s=86_400.0)
    assert keys.authenticate(text) == Caller("acme", key.id, frozenset({"score", "batch"}))
    assert keys.authenticate(another) == Caller("default", other.id, frozenset({"admin"}))


def test_the_secret_is_not_kept(keys: Keys, database: Database) -> None:
    key, text = keys.create(name="ci")
    secret = text.removeprefix(f"cg_{key.id}_")
    with database.read() as connection:
        (row,) = connection.execute(sa.select(KEYS)).all()
    assert secret not in repr(row)
    assert sha256(secret.encode()).hexdigest() in tuple(row)
    assert secret not in repr(keys.list_keys())


def swapped(text: str, place: int) -> str:
    return text[:place] + ("a" if text[place] != "a" else "b") + text[place + 1 :]


def test_no_other_text_opens(keys: Keys) -> None:
    key, text = keys.create(name="ci")
    _, another = keys.create(name="other")
    wrong = [swapped(text, place) for place in range(len(text))]
    wrong += [text + "a", text[:-1], f" {text}", f"{text}\n", text.upper(), "", "cg_", key.id, "x" * 100_000]
    wrong += [f"cg_{key.id}_{another[-43:]}", f"cg_{key.id}_{sha256(text[-43:].encode()).hexdigest()[:43]}"]
    wrong += ["cg_ñ" + text[4:], text.replace("_", "\0"), "cg_000000000000_" + "a" * 43]
    assert [text for text in wrong if keys.authenticate(text) is not None] == []
    assert keys.authenticate(text) is not None


def test_a_revoked_key_opens_nothing_and_others_stay(keys: Keys) -> None:
    key, text = keys.create(name="ci")
    _, another = keys.create(name="other")
    assert keys.revoke(key.id) is True
    (first, second) = keys.list_keys()
    assert (keys.authenticate(text), first.revoked_at is not None) == (None, True)
    assert (keys.authenticate(another) is not None, second.revoked_at) == (True, None)
    assert keys.revoke(key.id) is True
    assert keys.list_keys()[0].revoked_at == first.revoked_at
    assert keys.revoke("000000000000") is False


@pytest.mark.parametrize(("ago", "opens"), [(1.0, False), (-60.0, True)])
def test_an_expired_key_opens_nothing(keys: Keys, database: Database, ago: float, opens: bool) -> None:
    _, text = keys.create(name="ci", lasts_s=86_400.0)
    with database.begin() as connection:
        connection.execute(KEYS.update().values(expires_at=database.now() - ago))
    assert (keys.authenticate(text) is not None) is opens


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"name": ""}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": "x", "tenant": ""}, "tenant"),  # it would share what those have who need no key
        ({"name": "x", "tenant": "a b"}, "tenant"),
        ({"name": "x", "tenant": "-a"}, "tenant"),
        ({"name": "x", "tenant": "a" * 65}, "tenant"),
        ({"name": "x", "scopes": []}, "scope"),
        ({"name": "x", "scopes": ["score", "root"]}, "scope"),
        ({"name": "x", "scopes": ["score admin"]}, "scope"),
    ],
)
def test_what_cannot_be_used_is_named_and_nothing_is_made(keys: Keys, given: dict[str, object], place: str) -> None:
    with pytest.raises(SettingsError) as caught:
        keys.create(**given)  # type: ignore[arg-type]
    assert [problem.path for problem in caught.value.problems] == [place]
    assert keys.list_keys() == []


def test_there_is_no_key_until_there_was_one(keys: Keys) -> None:
    assert keys.any_key() is False
    key, _ = keys.create(name="ci")
    assert keys.any_key() is True
    keys.revoke(key.id)
    assert keys.any_key() is True


def test_the_first_key_is_made_once_however_many_ask(keys: Keys) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = [one for one in threads.map(lambda _: keys.create_first(), range(16)) if one]
    ((key, text),) = made
    assert keys.list_keys() == [key]
    assert (key.tenant, key.scopes) == ("default", ("admin",))
    found = keys.authenticate(text)
    assert found is not None
    assert all(found.may(scope) for scope in SCOPES)


def test_no_first_key_where_there_is_one_that_has_ended(keys: Keys) -> None:
    key, _ = keys.create(name="ci")
    keys.revoke(key.id)
    assert keys.create_first() is None
    assert [one.name for one in keys.list_keys()] == ["ci"]


def test_callers_do_not_wait_long_for_a_database_that_is_away() -> None:
    keys = Keys(open_database("postgresql+psycopg://nobody@127.0.0.1:9/none"), patience=0.0)
    for ask in (keys.any_key, lambda: keys.authenticate(f"cg_{'a' * 12}_{'b' * 43}")):
        with pytest.raises(BusyError):
            ask()


# Rotation.


def test_both_keys_hold_during_the_overlap_and_the_new_one_after_it(keys: Keys, database: Database) -> None:
    old, text = keys.create(name="ci", tenant="acme", scopes=["metrics"])
    new, another = keys.rotate(old.id, overlap_s=3_600.0) or pytest.fail("there is such a key")
    assert keys.authenticate(text) == Caller("acme", old.id, frozenset({"metrics"}))
    assert keys.authenticate(another) == Caller("acme", new.id, frozenset({"metrics"}))
    first, second = keys.list_keys()
    assert (first.replaced_by, second.name, second.expires_at) == (new.id, "ci", None)
    assert first.expires_at == pytest.approx(second.created_at + 3_600.0, abs=1.0)
    with database.begin() as connection:
        connection.execute(KEYS.update().where(KEYS.c.id == old.id).values(expires_at=database.now() - 1.0))
    assert [keys.authenticate(one) is not None for one in (text, another)] == [False, True]


def test_an_overlap_lets_no_key_live_longer(keys: Keys) -> None:
    old, _ = keys.create(name="ci", lasts_s=60.0)
    keys.rotate(old.id, overlap_s=3_600.0)
    first, second = keys.list_keys()
    assert first.expires_at == old.expires_at
    assert second.expires_at == pytest.approx(second.created_at + 60.0, abs=0.01)


def test_what_has_ended_is_not_rotated(keys: Keys, database: Database) -> None:
    revoked, expired, replaced = (keys.create(name=name)[0].id for name in ("revoked", "expired", "replaced"))
    keys.revoke(revoked)
    keys.rotate(replaced)
    with database.begin() as connection:
        connection.execute(KEYS.update().where(KEYS.c.id == expired).values(expires_at=1.0))
    before = keys.list_keys()
    for key, why in ((revoked, "has ended"), (expired, "has ended"), (replaced, "was replaced by")):
        with pytest.raises(SettingsError, match=why):
            keys.rotate(key)
    assert keys.rotate("000000000000") is None
    assert keys.list_keys() == before


def test_of_those_who_rotate_one_key_at_once_one_does(keys: Keys) -> None:
    key, _ = keys.create(name="ci")

    def rotate(_: int) -> bool:
        try:
            return keys.rotate(key.id) is not None
        except SettingsError:
            return False

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(rotate, range(8))) == [False] * 7 + [True]
    assert len(keys.list_keys()) == 2


# The last use.


def writes(database: Database) -> list[int]:
    """The rows that each statement on keys changes, from now on."""
    counted: list[int] = []

    def count(_: object, cursor: Any, statement: str, *__: object) -> None:
        if statement.startswith("UPDATE callgrade_keys"):
            counted.append(cursor.rowcount)

    sa.event.listen(database.engine, "after_cursor_execute", count)
    return counted


def test_a_use_is_written_once_a_minute(keys: Keys, database: Database) -> None:
    key, _ = keys.create(name="ci")
    assert keys.list_keys()[0].used_at is None
    counted = writes(database)
    for _ in range(3):
        keys.note_use(key.id)
    used = keys.list_keys()[0].used_at
    assert used == pytest.approx(key.created_at, abs=60.0)
    assert counted == [1, 0, 0]
    with database.begin() as connection:
        connection.execute(KEYS.update().values(used_at=used - USE_S - 1.0))
    keys.note_use(key.id)
    assert counted[-1] == 1


# Where the keys are.


def test_the_home_folder_is_made_when_it_is_needed_and_for_nobody_else(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "a" / "home")
    build_engine(settings)
    assert not settings.home.exists()
    build_database(settings).close()
    assert settings.home.stat().st_mode & 0o777 == 0o700
    assert (settings.home / "store.db").stat().st_mode & 0o777 == 0o600


def test_a_home_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError) as caught:
        prepare_database(Settings(home=tmp_path / "file"))
    assert [problem.path for problem in caught.value.problems] == ["CALLGRADE_HOME"]


UNREACHABLE = [
    ("postgresql://u:canARY@127.0.0.1:9/db", "port 9 failed"),
    ("postgresql://u:can@ARY@127.0.0.1:9/db", ""),
    ("postgresql://u:canARY@127.0.0.1:9/db?foo=1", ""),
]


@pytest.mark.parametrize(("url", "told"), UNREACHABLE)
def test_a_database_that_cannot_be_reached_is_named_without_its_password(url: str, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        prepare_database(Settings.from_env({"CALLGRADE_DATABASE_URL": url}), give_up=0.0)
    assert [problem.path for problem in caught.value.problems] == ["CALLGRADE_DATABASE_URL"]
    assert "ARY" not in str(caught.value)
    assert told in str(caught.value)

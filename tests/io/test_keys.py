"""Keys: what they open, what is kept of them, and whose first one is whose, on every database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest
import sqlalchemy as sa

from service.errors import BusyError, SettingsError
from service.io.bootstrap import database_of, engine_of, prepared
from service.io.settings import Settings
from service.io.store.callers import SCOPES, Caller
from service.io.store.database import Database, open_database
from service.io.store.keys import Key, Keys
from service.io.store.tables import KEYS

DAY = 86_400.0


@pytest.fixture
def keys(database: Database) -> Keys:
    return Keys(database)


def test_a_key_tells_whose_it_is(keys: Keys) -> None:
    key, text = keys.create(name="ci", tenant="acme", scopes=["batch", "score"])
    other, another = keys.create(name="ops", scopes=["admin"], days=1)
    assert keys.authenticate(text) == Caller("acme", key.id, frozenset({"score", "batch"}))
    assert keys.authenticate(another) == Caller("default", other.id, frozenset({"admin"}))


def test_a_key_has_the_form_that_is_promised(keys: Keys) -> None:
    key, text = keys.create(name="ci")
    assert text.startswith(f"cg_{key.id}_")
    assert len(key.id) == 12
    assert len(text) == len("cg_") + 12 + len("_") + 43


def test_the_secret_is_not_kept(keys: Keys, database: Database) -> None:
    key, text = keys.create(name="ci")
    secret = text.removeprefix(f"cg_{key.id}_")
    with database.read() as connection:
        (row,) = connection.execute(sa.select(KEYS)).all()
    assert secret not in repr(row)
    assert sha256(secret.encode()).hexdigest() in tuple(row)
    assert secret not in repr(keys.listed())


def swapped(text: str, place: int) -> str:
    """The key with one character changed."""
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
    (first, second) = keys.listed()
    assert (keys.authenticate(text), first.revoked_at is not None) == (None, True)
    assert (keys.authenticate(another) is not None, second.revoked_at) == (True, None)
    assert keys.revoke(key.id) is True
    assert keys.listed()[0].revoked_at == first.revoked_at
    assert keys.revoke("000000000000") is False


@pytest.mark.parametrize(("ago", "opens"), [(1.0, False), (-60.0, True)])
def test_an_expired_key_opens_nothing(keys: Keys, database: Database, ago: float, opens: bool) -> None:
    _, text = keys.create(name="ci", days=1)
    with database.begin() as connection:
        connection.execute(KEYS.update().values(expires_at=database.now() - ago))
    assert (keys.authenticate(text) is not None) is opens


def test_times_are_those_of_the_database(keys: Keys, database: Database) -> None:
    with database.read() as connection:
        before = connection.execute(sa.select(database.now())).scalar_one()
    keys.create(name="ends", days=90)
    keys.create(name="stays")
    ends, stays = keys.listed()
    assert 0.0 <= ends.created_at - before < 60.0
    assert ends.expires_at == pytest.approx(ends.created_at + 90 * DAY, abs=0.01)
    assert stays.expires_at is None


def test_scopes_are_listed_in_one_order_and_once(keys: Keys) -> None:
    key, _ = keys.create(name="ci", scopes=["admin", "score", "score"])
    assert key.scopes == ("score", "admin")
    assert keys.listed() == [key]


def test_a_scope_of_a_later_version_is_worth_nothing(keys: Keys, database: Database) -> None:
    _, text = keys.create(name="ci", scopes=["score"])
    with database.begin() as connection:
        connection.execute(KEYS.update().values(scopes="score root"))
    found = keys.authenticate(text)
    assert found is not None
    assert found.scopes == {"score"}


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
    assert keys.listed() == []


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
    assert keys.listed() == [key]
    assert (key.tenant, key.scopes) == ("default", ("admin",))
    found = keys.authenticate(text)
    assert found is not None
    assert all(found.may(scope) for scope in SCOPES)


def test_no_first_key_where_there_is_one_that_has_ended(keys: Keys) -> None:
    key, _ = keys.create(name="ci")
    keys.revoke(key.id)
    assert keys.create_first() is None
    assert [one.name for one in keys.listed()] == ["ci"]


def test_callers_do_not_wait_long_for_a_database_that_is_away() -> None:
    keys = Keys(open_database("postgresql+psycopg://nobody@127.0.0.1:9/none"), patience=0.0)
    for ask in (keys.any_key, lambda: keys.authenticate(f"cg_{'a' * 12}_{'b' * 43}")):
        with pytest.raises(BusyError):
            ask()


# Where the keys are.


def test_the_home_folder_is_made_when_it_is_needed_and_for_nobody_else(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "a" / "home")
    engine_of(settings)
    assert not settings.home.exists()
    database_of(settings).close()
    assert settings.home.stat().st_mode & 0o777 == 0o700
    assert (settings.home / "store.db").stat().st_mode & 0o777 == 0o600


def test_keys_outlive_the_process(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    made: Key
    made, text = Keys(prepared(settings)).create(name="ci")
    again = Keys(prepared(settings))
    assert again.listed() == [made]
    assert again.authenticate(text) is not None


def test_a_home_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError) as caught:
        prepared(Settings(home=tmp_path / "file"))
    assert [problem.path for problem in caught.value.problems] == ["CALLGRADE_HOME"]


def test_a_database_that_cannot_be_reached_is_named() -> None:
    settings = Settings(database_url="postgresql+psycopg://nobody:canary@127.0.0.1:9/none")
    with pytest.raises(SettingsError) as caught:
        prepared(settings, give_up=0.0)
    assert [problem.path for problem in caught.value.problems] == ["CALLGRADE_DATABASE_URL"]
    assert "canary" not in str(caught.value)
    assert "port 9 failed" in str(caught.value)


@pytest.mark.needs_postgres
def test_what_the_database_says_is_told(postgres_url: str) -> None:
    missing = postgres_url.rpartition("/")[0] + "/nobody_made_it"
    with pytest.raises(SettingsError, match='database "nobody_made_it" does not exist'):
        prepared(Settings(database_url=missing), give_up=0.0)


@pytest.mark.parametrize("url", ["postgresql://u:can@ARY@127.0.0.1:1/db", "postgresql://u:canARY@127.0.0.1:1/db?foo=1"])
def test_no_part_of_a_password_is_told(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        prepared(Settings.from_env({"CALLGRADE_DATABASE_URL": url}), give_up=0.0)
    assert [problem.path for problem in caught.value.problems] == ["CALLGRADE_DATABASE_URL"]
    assert "ARY" not in str(caught.value)

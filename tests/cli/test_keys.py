"""`callgrade keys`, and what `callgrade serve` makes of there being none."""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from service.settings import Settings
from service.store.access.keys import Keys
from service.wiring import prepare_database
from tests.cli.cli_run import Run
from tests.forked import Command, Forked
from tests.jobs.process import until


def held() -> Keys:
    """The keys of the command's home."""
    return Keys(prepare_database(Settings.from_env(os.environ)))


def test_a_new_key_is_alone_on_standard_output_and_works(run: Run) -> None:
    ran = run("keys", "create", "--name", "ci")
    (text,) = ran.lines
    found = held().authenticate(text)
    assert found is not None
    assert (ran.code, found.tenant, found.scopes) == (0, "default", {"score", "batch"})
    assert text not in ran.err
    assert f"key {found.key_id} of tenant default for score, batch, until it is revoked" in ran.err


def test_the_list_has_all_and_no_secret(run: Run) -> None:
    made = [run("keys", "create", "--name", name).out.strip() for name in ("one", "two")]
    ids = [text.split("_")[1] for text in made]
    assert run("keys", "revoke", ids[0]).code == 0
    listing = run("keys", "list", "--format", "json")
    one, two = json.loads(listing.out)
    assert ([one["id"], two["id"]], one["name"], one["scopes"]) == (ids, "one", ["score", "batch"])
    assert set(one) == {"id", "tenant", "name", "scopes", "created", "expires", "revoked", "used", "replaced_by"}
    assert (one["revoked"] is not None, two["revoked"], two["expires"]) == (True, None, None)
    table = run("keys", "list")
    assert [line.split()[:3] for line in table.lines] == [
        ["id", "tenant", "name"],
        [ids[0], "default", "one"],
        [ids[1], "default", "two"],
    ]
    assert not [text for text in made if text[-43:] in table.out + listing.out]


def test_a_revoked_key_ends(run: Run) -> None:
    text = run("keys", "create", "--name", "ci").out.strip()
    key_id = text.split("_")[1]
    assert held().authenticate(text) is not None
    assert [run("keys", "revoke", key_id).code for _ in range(2)] == [0, 0]
    assert held().authenticate(text) is None


@pytest.mark.parametrize(("given", "seconds"), [("90d", 90 * 86_400), ("12h", 43_200), ("30m", 1_800), ("2", 172_800)])
def test_a_new_key_is_as_it_is_asked_for(run: Run, given: str, seconds: int) -> None:
    options = ("--tenant", "acme", "--scope", "admin", "--scope", "batch", "--expires", given)
    found = held().authenticate(run("keys", "create", "--name", "x", *options).out.strip())
    (key,) = held().list_keys()
    assert found is not None
    assert (found.tenant, key.name, key.scopes) == ("acme", "x", ("batch", "admin"))
    assert key.expires_at == pytest.approx(key.created_at + seconds, abs=0.01)


def test_a_key_is_rotated_and_both_hold_for_a_while(run: Run) -> None:
    old = run("keys", "create", "--name", "ci", "--scope", "metrics").out.strip()
    ran = run("keys", "rotate", old.split("_")[1], "--overlap", "2h", "--expires", "90d")
    (new,) = ran.lines
    assert [held().authenticate(text) is not None for text in (old, new)] == [True, True]
    first, second = held().list_keys()
    assert (second.name, second.scopes, first.replaced_by) == ("ci", ("metrics",), second.id)
    assert f"key {first.id} stays valid for at most 2 hours" in ran.err
    assert first.expires_at == pytest.approx(second.created_at + 7_200, abs=1.0)
    again = run("keys", "rotate", first.id)
    assert (again.code, again.out) == (4, "")
    assert f"was replaced by {second.id}" in again.err


def test_the_audit_log_tells_who_did_it(run: Run) -> None:
    text = run("keys", "create", "--name", "ci").out.strip()
    key_id = text.split("_")[1]
    run("keys", "revoke", key_id)
    found = run("audit", "--format", "json")
    revoked, created = json.loads(found.out)["data"]
    assert [revoked["act"], created["act"]] == ["key.revoke", "key.create"]
    assert {one["target"] for one in (revoked, created)} == {key_id}
    assert created["who"].startswith("user ")
    assert created["origin"] == socket.gethostname()
    table = run("audit", "--limit", 1)
    assert (table.lines[0].split(), len(json.loads(run("audit", "-f", "json", "--limit", 1).out)["data"])) == (
        ["at", "who", "from", "act", "tenant", "target"],
        1,
    )
    assert text[-43:] not in table.out + found.out


def test_other_commands_make_no_store(run: Run) -> None:
    assert run("rubrics", "list").code == 0
    assert run("keys").code == 0
    assert list(Path(os.environ["CALLGRADE_HOME"]).iterdir()) == []


# Serving.


@contextmanager
def served(folder: Path) -> Iterator[tuple[int, list[str]]]:
    """A server on every address with a first key: its port, and what it said before it listened."""
    environment = os.environ | {"CALLGRADE_FIRST_KEY": "true", "CALLGRADE_WORKER": "false"}
    args = "serve", "--host", "0.0.0.0", "--port", "0"  # noqa: S104
    command = Command("service.cli", args, environment, folder / "server.log")
    server = Forked(command)
    try:
        until(lambda: '"listening"' in command.log.read_text() or server.poll() is not None)
        said, listening, _ = command.log.read_text().partition('{"')
        assert listening, said
        line = next(line for line in command.log.read_text().splitlines() if '"listening"' in line)
        yield json.loads(line)["port"], said.splitlines()
    finally:
        server.terminate()
        server.wait(60)


def asked(port: int, key: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/metrics", headers={"authorization": f"Bearer {key}"})
    status = connection.getresponse().status
    connection.close()
    return status


def test_the_first_key_is_printed_once_and_opens_everything(tmp_path: Path) -> None:
    with served(tmp_path) as (port, said):
        (key,) = [line for line in said if line.startswith("cg_")]
        assert [asked(port, key), asked(port, "none")] == [200, 401]
    with served(tmp_path) as (port, said):
        assert [line for line in said if "cg_" in line] == []
        assert asked(port, key) == 200
    assert [one.scopes for one in held().list_keys()] == [("admin",)]

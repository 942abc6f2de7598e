"""Labelling in a real browser, by keys alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.settings import Settings
from service.store.access.keys import Keys
from service.wiring import prepare_database
from tests.api.test_labels import body
from tests.api.test_server import Server, serving
from tests.browser.driven import Tab

pytestmark = pytest.mark.needs_browser

ITEMS = 6
ITEM = "document.querySelector('.verdict input[name=item]')?.value ?? ''"
ENTER = "document.getElementById('key').value = KEY; document.querySelector('main form').submit()"


def press(page: Tab, key: str) -> None:
    """One key, as somebody presses it."""
    text = {"text": key} if len(key) == 1 else {}
    page.send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
    page.send("Input.dispatchKeyEvent", type="keyUp", key=key)


def enter(page: Tab, server: Server, key: str, path: str) -> str:
    """Signs in, and opens a page."""
    here = f"http://localhost:{server.port}"
    page.open(f"{here}/sign-in")
    page.until("!!document.getElementById('key')")
    page.run(ENTER.replace("KEY", json.dumps(key)))
    page.until("location.pathname", lambda found: found == "/")
    page.open(f"{here}{path}")
    return here


def test_items_are_labelled_by_keys_alone(page: Tab, tmp_path: Path) -> None:
    database = prepare_database(Settings(home=tmp_path))
    _, key = Keys(database).create(name="ana", tenant="t", scopes=["label", "score"])
    database.close()
    with serving(tmp_path) as server:
        bearer = f"Authorization: Bearer {key}"
        for n in range(ITEMS):
            sent = json.dumps(body(n, store=True)).encode()
            status, _ = server.ask("POST", "/v1/score", sent, bearer, "Content-Type: application/json")
            assert status == 200
        here = enter(page, server, key, "/label?criterion=result_groundedness")
        seen: list[str] = []
        for n in range(ITEMS):
            seen.append(page.until(ITEM, lambda item: bool(item) and item not in seen))
            page.until("document.readyState === 'complete'")
            press(page, "n")
            page.until("document.activeElement.id === 'note'")
            page.send("Input.insertText", text=f"note {n}")
            press(page, "Escape")
            press(page, "pfu"[n % 3])
        page.until("document.body.textContent.includes('Nothing is left to label')")
        page.until("document.readyState === 'complete'")
        press(page, "z")
        assert page.until(ITEM) == seen[-1]
        _, told = server.ask("GET", "/v1/labels", b"", bearer)
        assert page.errors == []
        assert [url for url in page.requests if not url.startswith((here, "data:,"))] == []
    labels = json.loads(told)["data"]
    assert [(one["item"], one["label"], one["note"]) for one in reversed(labels)] == [
        (item, ("pass", "fail", "unsure")[n % 3], f"note {n}") for n, item in enumerate(seen[:-1])
    ]

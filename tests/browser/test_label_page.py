"""Labelling in a real browser, by keys alone; everybody can use the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from service.settings import Settings
from service.store.access.keys import Keys
from service.wiring import prepare_database
from tests.api.test_labels import body
from tests.api.test_server import serving
from tests.browser.paged import Visit

pytestmark = pytest.mark.needs_browser

ITEMS = 6
PATH = "/label?criterion=result_groundedness"


def test_items_are_labelled_by_keys_alone(browser: Browser, tmp_path: Path) -> None:
    database = prepare_database(Settings(home=tmp_path))
    _, key = Keys(database).create(name="ana", tenant="t", scopes=["label", "score"])
    database.close()
    with serving(tmp_path) as server:
        bearer = f"Authorization: Bearer {key}"
        for n in range(ITEMS):
            sent = json.dumps(body(n, store=True)).encode()
            assert server.ask("POST", "/v1/score", sent, bearer, "Content-Type: application/json")[0] == 200
        visit = Visit(browser, f"http://localhost:{server.port}")
        page, item, seen = visit.page, visit.page.locator(".verdict input[name=item]"), list[str]()
        visit.open("/sign-in")
        page.locator("#key").fill(key)
        page.locator("main form button").click()
        page.wait_for_url("**/")
        assert visit.look(PATH) == {}
        for n in range(ITEMS):
            expect(item).not_to_have_value(seen[-1] if seen else "")
            page.wait_for_load_state()
            seen.append(item.input_value())
            page.keyboard.press("n")
            expect(page.locator("#note")).to_be_focused()
            page.keyboard.insert_text(f"note {n}")
            page.keyboard.press("Escape")
            page.keyboard.press("pfu"[n % 3])
        expect(page.locator("body")).to_contain_text("Nothing is left to label")
        page.wait_for_load_state()
        page.keyboard.press("z")
        expect(item).to_have_value(seen[-1])
        labels = json.loads(server.ask("GET", "/v1/labels", b"", bearer)[1])["data"]
        visit.close()
    assert [(one["item"], one["label"], one["note"]) for one in reversed(labels)] == [
        (item, ("pass", "fail", "unsure")[n % 3], f"note {n}") for n, item in enumerate(seen[:-1])
    ]

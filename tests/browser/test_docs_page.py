"""The page of the contract in a real browser: it shows every route, with a key where one is needed, and asks nobody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from service.settings import Settings
from service.store.access.keys import Keys
from service.wiring import prepare_database
from tests.api.test_server import Server, serving
from tests.browser.paged import Visit

pytestmark = pytest.mark.needs_browser

ROUTES = "details[id^=route-]"
SEND = """(() => {
  const route = document.getElementById("route-show_rubric")
  route.querySelectorAll("details").forEach((one) => { one.open = true })
  route.querySelector("form button").click()
})()"""


def count(server: Server, *headers: str) -> int:
    """How many operations the contract has."""
    _, body = server.ask("GET", "/openapi.json", b"", *headers)
    return sum(len(operations) for operations in json.loads(body)["paths"].values())


def send(page: Page) -> None:
    """Asks for a rubric; it is shown."""
    page.evaluate(SEND)
    expect(page.locator("#route-show_rubric pre").first).to_contain_text('"id":"four_step"')


def test_every_route_is_shown_and_answers(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        visit = Visit(browser, f"http://localhost:{server.port}")
        visit.open("/docs")
        expect(visit.page.locator(ROUTES)).to_have_count(count(server))
        send(visit.page)
        visit.page.evaluate("location.hash = '#schema-ScoreRequest'")
        expect(visit.page.locator("#schema-ScoreRequest[open]")).to_have_count(1)
        assert visit.page.locator("#schema-ScoreRequest td").count() > 6
        visit.close()


def test_where_keys_are_set_one_is_entered(browser: Browser, tmp_path: Path) -> None:
    database = prepare_database(Settings(home=tmp_path))
    key = Keys(database).create(name="reader", scopes=["score"])[1]
    database.close()
    with serving(tmp_path) as server:
        visit = Visit(browser, f"http://localhost:{server.port}")
        visit.open("/docs")
        told, routes = visit.page.locator("#told"), visit.page.locator(ROUTES)
        expect(told).to_contain_text("Enter a key")
        for entered, shown in (("cg_wrong", 0), (key, count(server, f"authorization: Bearer {key}"))):
            visit.page.locator("#key input").fill(entered)
            visit.page.locator("#key button").click()
            if not shown:
                expect(told).to_contain_text("401: ")
            expect(routes).to_have_count(shown)
        send(visit.page)
        kept = visit.page.evaluate(
            "location.href + document.cookie + JSON.stringify({...localStorage, ...sessionStorage})"
        )
        assert kept == f"http://localhost:{server.port}/docs{{}}"
        assert [url for url in visit.asked if key in url] == []
        visit.told = [one for one in visit.told if "401" not in one]  # the page says that it needs a key
        visit.close()

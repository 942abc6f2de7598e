"""The page of the contract in a real browser: it shows every route, with a key where one is needed, and asks nobody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.settings import Settings
from service.store.access.keys import Keys
from service.wiring import prepare_database
from tests.api.test_server import Server, serving
from tests.browser.driven import Tab

pytestmark = pytest.mark.needs_browser

ROUTES = "document.querySelectorAll('details[id^=route-]').length"
TOLD = "document.getElementById('told').textContent"
ENTER = """(() => {
  document.querySelector("#key input").value = KEY
  document.querySelector("#key button").click()
})()"""
SEND = """(() => {
  const route = document.getElementById("route-show_rubric")
  route.querySelectorAll("details").forEach((one) => { one.open = true })
  route.querySelector("form button").click()
})()"""


def count(server: Server, *headers: str) -> int:
    """How many operations the contract has."""
    _, body = server.ask("GET", "/openapi.json", b"", *headers)
    return sum(len(operations) for operations in json.loads(body)["paths"].values())


def assert_alone(page: Tab, server: Server) -> None:
    """Nothing was asked of another origin, no policy was broken and no script failed."""
    here = (f"http://localhost:{server.port}/", "data:,")
    assert [url for url in page.requests if not url.startswith(here)] == []
    assert [one for one in page.errors if "401" not in one] == []  # the page says that it needs a key


def test_every_route_is_shown_and_answers(page: Tab, tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        page.open(f"http://localhost:{server.port}/docs")
        assert page.until(ROUTES) == count(server)
        page.run(SEND)
        shown = page.until("document.querySelector('#route-show_rubric pre').textContent", lambda text: "}" in text)
        assert shown.startswith("200 ")
        assert '"id":"four_step"' in shown
        page.run("location.hash = '#schema-ScoreRequest'")
        page.until("document.getElementById('schema-ScoreRequest').open")
        assert page.run("document.querySelectorAll('#schema-ScoreRequest td').length") > 6
        assert_alone(page, server)


def test_where_keys_are_set_one_is_entered(page: Tab, tmp_path: Path) -> None:
    database = prepare_database(Settings(home=tmp_path))
    text = Keys(database).create(name="reader", scopes=["score"])[1]
    database.close()
    with serving(tmp_path) as server:
        page.open(f"http://localhost:{server.port}/docs")
        assert "Enter a key" in page.until(TOLD, lambda told: "key" in (told or ""))
        page.run(ENTER.replace("KEY", json.dumps("cg_wrong")))
        page.until(TOLD, lambda told: "401: " in told)
        assert page.run(ROUTES) == 0
        page.run(ENTER.replace("KEY", json.dumps(text)))
        assert page.until(ROUTES) == count(server, f"authorization: Bearer {text}")
        page.run(SEND)
        page.until("document.querySelector('#route-show_rubric pre').textContent", lambda shown: "four_step" in shown)
        assert [url for url in page.requests if text in url] == []
        assert page.run("location.href + document.cookie + JSON.stringify({...localStorage, ...sessionStorage})") == (
            f"http://localhost:{server.port}/docs{{}}"
        )
        assert_alone(page, server)

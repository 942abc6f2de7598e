"""The pages in a real browser: the journeys with and without a script, by keyboard, for everybody, and with hostile texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from service.settings import Settings
from service.store.database import Database
from service.wiring import prepare_database
from tests.api.test_server import Server, serving
from tests.browser.paged import Visit
from tests.bulk import share
from tests.store.played import ended
from tests.web.site import build_request, fill, record
from tests.web.test_pages import build_hostile

pytestmark = pytest.mark.needs_browser


@dataclass
class Site:
    """A running service, with what is in its store."""

    server: Server
    database: Database
    batch: str
    browser: Browser

    @property
    def token(self) -> str:
        """What `serve` printed."""
        return self.server.pages.partition("token=")[2]

    def visit(self, **window: object) -> Visit:
        """A window of somebody who has signed in."""
        found = Visit(self.browser, f"http://127.0.0.1:{self.server.port}", **window)
        found.open(f"/sign-in?token={self.token}")
        return found


@pytest.fixture(scope="module")
def site(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("home")
    database = prepare_database(Settings(home=home))
    batch = fill(database, [build_request(n) for n in range(60)], name="nightly")
    with serving(home) as server:
        yield Site(server, database, batch, browser)
    database.close()


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without"])
def test_a_first_trace_is_pasted_and_the_step_that_broke_is_read(site: Site, script: bool) -> None:
    visit = site.visit(java_script_enabled=script)
    page = visit.page
    page.get_by_label("The trace, as JSON or JSON Lines").fill(json.dumps(build_request(3)))
    page.get_by_role("button", name="Score it").click()
    expect(page.get_by_text("Failed at arguments")).to_be_visible()
    expect(page.get_by_text("cents: expected 5403, got 54030").first).to_be_visible()
    visit.close()


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without"])
def test_from_a_run_to_the_value_that_is_wrong(site: Site, script: bool) -> None:
    visit = site.visit(java_script_enabled=script)
    page = visit.page
    page.get_by_role("link", name="nightly").first.click()
    page.get_by_role("row").filter(has_text="wrong_argument").get_by_role("link").click()
    expect(page.get_by_text("failed first at: arguments")).to_be_visible()
    page.get_by_role("link", name="item-3", exact=True).click()
    expect(page.get_by_role("cell", name="54030")).to_be_visible()
    page.get_by_role("link", name="next").click()
    expect(page.get_by_role("heading", name="item-6", level=1)).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    visit.close()


def test_a_run_is_found_and_opened_by_keys_alone(site: Site) -> None:
    visit = site.visit()
    page = visit.page
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "nightly":
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="nightly", level=1)).to_be_visible()
    visit.close()


WATCH = """() => {
  window.moved = []
  const name = (source) => source.node?.textContent?.trim().slice(0, 60) ?? "?"
  new PerformanceObserver((list) => { for (const one of list.getEntries()) window.moved.push(...one.sources.map(name)) })
    .observe({ type: "layout-shift", buffered: true })
}"""


def test_a_run_is_followed_as_it_goes_on_and_nothing_moves(site: Site) -> None:
    running = fill(site.database, [build_request(n) for n in (1, 2, 4)], over=False)
    visits = [site.visit(viewport={"width": width, "height": height}) for width, height in ((390, 844), (1_280, 800))]
    for visit in visits:
        visit.open(f"/batches/{running}")
        visit.page.evaluate(WATCH)
        expect(visit.page.get_by_text("3 of 4 items done")).to_be_visible()
    lines = [json.dumps({"custom_id": f"item-{n}", "request": build_request(n)}) for n in range(3)]
    record(
        site.database,
        running,
        dict(enumerate([*lines, json.dumps({"custom_id": "later", "request": build_request(3)})])),
    )
    ended(site.database, running)
    for visit in visits:
        expect(visit.page.get_by_text("4 of 4 items done")).to_be_visible()
        expect(visit.page.get_by_text("completed")).to_be_visible()
        expect(visit.page.get_by_role("link", name="1 failed")).to_be_visible()
        expect(visit.page.get_by_text("Tools mistaken for each other")).to_be_attached()
        assert (
            visit.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(moved))))")
            == []
        )
        visit.open("/")
        visit.close()


def shorten_contract(asked: Route) -> None:
    """A share of the operations and schemas, which are all shown alike."""
    answer = asked.fetch()
    contract = answer.json()
    schemas = contract["components"]["schemas"]
    contract["paths"] = {path: contract["paths"][path] for path in share([*contract["paths"]], one_in=4)}
    contract["components"]["schemas"] = {name: schemas[name] for name in share([*schemas], one_in=4)}
    asked.fulfill(response=answer, json=contract)


@pytest.mark.whole
def test_everybody_can_use_every_page_at_every_width(site: Site) -> None:
    visit, found = site.visit(), dict[str, object]()
    visit.page.route("**/openapi.json", shorten_contract)
    below = (
        "",
        "/summary?assert=pass_rate%20%3E%3D%200.9",
        "/traces",
        "/traces?verdict=fail",
        "/traces/3",
        "/traces/13",
    )
    others = ("/scores", "/label", "/label/disagreements", "/judges", "/judges/result_groundedness")
    paths = [
        "/",
        "/batches",
        "/calibrations",
        "/sign-in",
        "/batches/nothing",
        *others,
        *[f"/batches/{site.batch}{one}" for one in below],
    ]
    for path in paths:
        found |= visit.look(path)
    found |= visit.look("/docs", shows="details[id^=route-]")
    visit.told = [one for one in visit.told if "404" not in one]  # the browser says what a missing page is answered
    visit.close()
    assert found == {}


@pytest.mark.whole
@pytest.mark.shared_data
def test_hostile_texts_run_nothing(site: Site, shared_data: Path) -> None:
    lines = (shared_data / "hostile" / "blns.jsonl").read_text("utf-8").splitlines()
    lines += (shared_data / "hostile" / "injections.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"][:400] for line in lines if line]
    hostile = [text for text in texts if "\0" not in text and re.search(r"[<>\"'&]|javascript", text)]
    requests = build_hostile(hostile)
    batch = fill(site.database, requests, name="<img src=x onerror=alert(1)>")
    visit = site.visit()
    for path in (
        "",
        "/traces?limit=500",
        "/summary",
        *[f"/traces/{n}" for n in share(range(0, len(requests), 9), one_in=4)],
    ):
        visit.open(f"/batches/{batch}{path}")
    visit.close()

"""Journeys over a served store that a real batch has filled: settling, and a fit that changes a verdict."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, expect

from service.core.judging.fits import build_route
from tests.api.test_fits import fit
from tests.api.test_labels import body
from tests.api.test_server import Server, serving, working
from tests.browser.paged import Visit, browsing
from tests.faults.provider import Provider
from tests.faults.provider import serving as providing

expect.set_options(timeout=60_000)  # as long as a busy machine may take

pytestmark = pytest.mark.needs_browser

WITH_AND_WITHOUT = pytest.mark.parametrize("script", [True, False], ids=["with a script", "without"])
MODEL = "judge-1"
ITEMS = 8


@dataclass
class Site:
    """A running service, and a batch that it has judged: every other answer is wrong."""

    server: Server
    batch: str
    browser: Browser
    api_base: str
    """Where the judge answers, which a fit is bound to."""

    def visit(self, **window: object) -> Visit:
        """A window of somebody who has signed in."""
        found = Visit(self.browser, f"http://127.0.0.1:{self.server.port}", **window)
        found.open(f"/sign-in?token={self.server.pages.partition('token=')[2]}")
        return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home, provider = tmp_path_factory.mktemp("home"), Provider()
    with providing(provider), browsing() as browser, ExitStack() as running:
        judged = {"judge_model": f"openai/{MODEL}", "judge_api_key": "sk-x", "judge_api_base": provider.base()}
        server = running.enter_context(serving(home, **judged))
        running.enter_context(working(home, **judged))
        sent = {"name": "nightly", "items": [body(n, right=n % 2 == 0) for n in range(ITEMS)]}
        status, made = server.ask("POST", "/v1/batches", json.dumps(sent).encode())
        assert status == 202, made
        batch = json.loads(made)["id"]
        while json.loads(server.ask("GET", f"/v1/batches/{batch}", b"")[1])["status"] != "completed":
            time.sleep(0.1)
        yield Site(server, batch, browser, provider.base())


@WITH_AND_WITHOUT
def test_what_people_differ_on_is_settled(site: Site, script: bool) -> None:
    visit, item = site.visit(java_script_enabled=script), f"{site.batch}/{1 if script else 3}"
    page = visit.page
    for annotator, button in (("ana", "Pass"), ("ben", "Fail")):
        visit.open(f"/label?criterion=result_groundedness&annotator={annotator}&item={item}")
        page.get_by_role("button", name=button).click()
        expect(page.get_by_text("The judge had said")).to_be_visible()
    page.get_by_role("link", name="Agreement of annotators").click()
    case = page.get_by_role("article").filter(has_text=f"item {item[-1]} of")
    expect(case.get_by_text("ana")).to_be_visible()
    case.get_by_label("Why").fill("the amount is another one")
    case.get_by_role("button", name="It fails").click()
    expect(page.get_by_text("Nothing is left to settle")).to_be_visible()
    visit.close()


@WITH_AND_WITHOUT
def test_a_fit_is_installed_and_a_verdict_changes(site: Site, script: bool) -> None:
    visit, made = site.visit(java_script_enabled=script), fit(model=MODEL, route=build_route(api_base=site.api_base))
    page, log = visit.page, json.dumps(body(1, right=False))
    assert score_pasted(visit, log) == "fail"
    visit.open("/judges/result_groundedness")
    page.get_by_text("Put a fit in place").click()
    page.get_by_label("or a fit, as a file").fill(made.model_dump_json())
    page.get_by_role("button", name="Put it in place").click()
    expect(page.get_by_text("in use")).to_be_visible()
    assert score_pasted(visit, log) == "pass"
    visit.open("/judges/result_groundedness")
    page.get_by_role("button", name="Take it back").click()
    expect(page.get_by_text("None: verdicts rest on the judge")).to_be_visible()
    visit.close()


def score_pasted(visit: Visit, log: str) -> str:
    """The verdict of a log that is pasted on the start page."""
    visit.open("/")
    visit.page.get_by_label("The log, as JSON or JSON Lines").fill(log)
    visit.page.get_by_role("button", name="Score it").click()
    expect(visit.page.locator(".verdict").first).to_be_visible()
    return (visit.page.locator(".verdict").first.get_attribute("class") or "").removeprefix("verdict ")


def test_every_page_of_labels_and_judges_can_be_used_by_everybody(site: Site) -> None:
    visit, found = site.visit(), dict[str, object]()
    paths = (
        "/",
        "/label?criterion=result_groundedness",
        "/label/disagreements",
        "/judges",
        "/judges/result_groundedness",
    )
    for path in (*paths, f"/runs/{site.batch}", f"/runs/{site.batch}/traces/1"):
        found |= visit.look(path)
    visit.close()
    assert found == {}

"""Pages of labels and judges over a served store that a real batch has filled: everybody can use each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, expect

from tests.api.test_labels import body
from tests.api.test_server import Server, serving, working
from tests.browser.paged import Visit, browsing
from tests.faults.provider import Provider
from tests.faults.provider import serving as providing
from tests.jobs.process import until

expect.set_options(timeout=60_000)  # as long as a busy machine may take

pytestmark = pytest.mark.needs_browser

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
        lines = "\n".join(json.dumps(body(n, right=n % 2 == 0)) for n in range(ITEMS))
        status, made = server.ask("POST", "/v1/batches", lines.encode())
        assert status == 202, made
        batch = json.loads(made)["id"]
        until(lambda: json.loads(server.ask("GET", f"/v1/batches/{batch}", b"")[1])["status"] == "completed")
        yield Site(server, batch, browser, provider.base())


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

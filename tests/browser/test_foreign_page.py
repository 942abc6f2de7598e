"""A real browser shows a page of elsewhere, which tries to read and to spend on a service of this machine."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.api.test_presence import judged
from tests.api.test_server import Server
from tests.faults.provider import Provider
from tests.jobs.process import request, until

pytestmark = pytest.mark.needs_browser

PAGE = """<!doctype html><pre id=found>nothing</pre><script>
const service = SERVICE, body = BODY, found = {}
const tried = async (name, path, options) => {
  try {
    const answer = await fetch(service + path, options)
    found[name] = answer.type + " " + answer.status + " " + (await answer.text()).length
  } catch (error) { found[name] = "failed" }
}
const json = {"content-type": "application/json"}
const all = async () => {
  await tried("read", "/v1/rubrics", {})
  await tried("read blindly", "/v1/rubrics", {mode: "no-cors"})
  await tried("metrics", "/metrics", {})
  await tried("spend", "/v1/score", {method: "POST", headers: json, body})
  await tried("spend as text", "/v1/score", {method: "POST", body})
  await tried("spend blindly", "/v1/score", {method: "POST", mode: "no-cors", body})
  await tried("spend without a type", "/v1/score", {method: "POST", mode: "no-cors", body: new Blob([body])})
  await tried("spend on a batch", "/v1/batches", {method: "POST", mode: "no-cors", body: '{"items": [' + body + ']}'})
  found.beacon = navigator.sendBeacon(service + "/v1/score", body)
  const form = document.getElementById("form"), frame = document.getElementById("frame")
  form.action = service + "/v1/score"
  await new Promise((done) => { frame.onload = done; form.submit() })
  document.getElementById("found").textContent = JSON.stringify(found)
}
addEventListener("load", all)
</script>
<form id=form method=post enctype=text/plain target=frame><input name='{"a":"' value='"}'></form>
<iframe id=frame name=frame></iframe>
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Provider]]:
    with judged(tmp_path_factory.mktemp("home"), latency=0.0) as running:
        yield running


@contextmanager
def hostile(service: str) -> Iterator[int]:
    """The port of a web server with a page that attacks a service."""
    body = json.dumps(request(1))
    text = PAGE.replace("SERVICE", json.dumps(service)).replace("BODY", json.dumps(body)).encode()

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page in a profile of its own."""
    with browser.new_context() as context:
        yield context.new_page()


def answered(server: Server) -> list[int]:
    """How requests were answered."""
    lines = [json.loads(line) for line in server.log if line.startswith("{")]
    return [line["status"] for line in lines if line["message"] == "request"]


@pytest.mark.parametrize(
    ("origin", "to"),
    [
        ("127.0.0.1:{page}", "localhost:{service}"),
        ("localhost:{page}", "localhost:{service}"),
        ("evil.example:{page}", "127.0.0.1:{service}"),
        ("evil.example:{page}", "evil.example:{service}"),
    ],
    ids=["another name", "another port", "another site", "a name that leads here"],
)
def test_a_page_of_elsewhere_neither_reads_nor_spends(
    service: tuple[Server, Provider], page: Page, origin: str, to: str
) -> None:
    server, provider = service
    before = len(answered(server))
    with hostile("http://" + to.format(service=server.port)) as port:
        page.goto(f"http://{origin.format(page=port)}/")
        expect(page.locator("#found")).not_to_have_text("nothing")
        found = json.loads(page.locator("#found").inner_text())
    read = {name: told for name, told in found.items() if name != "beacon" and told not in ("failed", "opaque 0 0")}
    assert not read
    until(lambda: len(answered(server)) >= before + 9)  # all but the beacon, which goes when the browser likes
    assert set(answered(server)[before:]) == {403}
    assert not provider.requests


@pytest.mark.parametrize(("host", "status"), [("localhost", 200), ("evil.example", 403)])
def test_an_address_that_is_opened_shows_what_its_name_allows(
    service: tuple[Server, Provider], page: Page, host: str, status: int
) -> None:
    """What a page of that name, once it leads here, could read as its own. Under our own name it is shown."""
    server, _ = service
    before = len(answered(server))
    page.goto(f"http://{host}:{server.port}/v1/rubrics")
    expect(page.locator("body")).to_contain_text("four_step" if status == 200 else "detail")
    assert ("four_step" in page.locator("body").inner_text()) is (status == 200)
    assert set(answered(server)[before:]) <= {status, 404}  # a browser looks for an icon

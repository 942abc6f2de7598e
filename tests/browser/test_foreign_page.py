"""A real browser shows a page of elsewhere, which tries to read and to spend on a service of this machine."""

from __future__ import annotations

import html
import http.server
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.api.test_presence import judged
from tests.api.test_server import Server
from tests.browser.driven import FLAGS, installed
from tests.faults.provider import Provider
from tests.jobs.process import request

pytestmark = pytest.mark.needs_browser

OPENING = (
    *FLAGS,
    # Names that lead to this machine, as those of a page that rebinds its own do; no other name leads anywhere.
    "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
    "--virtual-time-budget=20000",
    "--dump-dom",
)

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
  document.getElementById("found").textContent = JSON.stringify(found)
}
all()
</script>
<form id=form method=post enctype=text/plain target=frame><input name='{"a":"' value='"}'></form>
<iframe name=frame></iframe>
<script>form.action = service + "/v1/score"; form.submit()</script>
"""


@pytest.fixture(scope="module")
def browser() -> str:
    return installed()


@contextmanager
def page(service: str) -> Iterator[int]:
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


def opened(browser: str, url: str, profile: Path) -> subprocess.CompletedProcess[str]:
    """A browser that has opened an address, in a new profile, and printed what it shows."""
    command = [browser, *OPENING, f"--user-data-dir={profile}", url]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def shown(browser: str, url: str, profile: Path) -> dict[str, Any]:
    """What the page at a URL has found."""
    ran = opened(browser, url, profile)
    found = re.search(r"<pre id=\"?found\"?>(.*?)</pre>", ran.stdout)
    assert found, (ran.stdout[-500:], ran.stderr[-500:])
    return json.loads(html.unescape(found[1]))


def answered(server: Server) -> list[tuple[str, int]]:
    """Routes that were answered, and how."""
    lines = [json.loads(line) for line in server.log if line.startswith("{")]
    return [(line["route"], line["status"]) for line in lines if line["message"] == "request"]


@pytest.mark.parametrize(
    ("origin", "service"),
    [
        ("127.0.0.1:{page}", "localhost:{service}"),
        ("localhost:{page}", "localhost:{service}"),
        ("evil.example:{page}", "127.0.0.1:{service}"),
        ("evil.example:{page}", "evil.example:{service}"),
    ],
    ids=["another name", "another port", "another site", "a name that leads here"],
)
def test_a_page_of_elsewhere_neither_reads_nor_spends(browser: str, tmp_path: Path, origin: str, service: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with judged(home, latency=0.0) as (server, provider):
        with page("http://" + service.format(service=server.port)) as port:
            found = shown(browser, f"http://{origin.format(page=port)}/", tmp_path / "profile")
        assert_refused(server, provider, found)


def assert_refused(server: Server, provider: Provider, found: dict[str, Any]) -> None:
    read = {name: told for name, told in found.items() if name != "beacon" and told not in ("failed", "opaque 0 0")}
    assert not read
    assert {status for _, status in answered(server)} == {403}
    assert len(answered(server)) >= 5
    assert not provider.requests


@pytest.mark.parametrize(("host", "status"), [("localhost", 200), ("evil.example", 403)])
def test_an_address_that_is_opened_shows_what_its_name_allows(
    browser: str, tmp_path: Path, host: str, status: int
) -> None:
    """What a page of that name, once it leads here, could read as its own. Under our own name it is shown."""
    home = tmp_path / "home"
    home.mkdir()
    with judged(home, latency=0.0) as (server, _):
        ran = opened(browser, f"http://{host}:{server.port}/v1/rubrics", tmp_path / "profile")
        assert ("four_step" in ran.stdout) is (status == 200)
        assert {found for _, found in answered(server)} <= {status, 404}  # a browser looks for an icon

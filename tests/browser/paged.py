"""A real browser on our pages: what it asked for, what it complained of, and whether its pages can be used by everybody."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
ASKED = "axe.run(document, {resultTypes: ['violations'], preload: false})"
"""`preload` would fetch every stylesheet again, half of the time, for two rules: one that is off, one on sounds that play of
themselves."""
FOUND = f"{ASKED}.then((found) => found.violations)"

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--in-process-gpu"),
    # Names that lead to this machine, as those of a page that rebinds its own do; no other name leads anywhere.
    "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
]

WINDOWS: list[tuple[int, Literal["light", "dark"]]] = [(400, "light"), (1_400, "dark")]
"""Widths and schemes that everybody's pages are tried in: each once, for what is too wide has no colour, and none is too pale
for a width."""


@contextmanager
def browsing() -> Generator[Browser]:
    """The browser of this machine; skips where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser for tests: none of {', '.join(NAMES)}")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One window on one service. `close` says what was wrong on the way."""

    def __init__(self, browser: Browser, base: str, **window: Any) -> None:
        self.base = base
        self.told: list[str] = []
        self.asked: list[str] = []
        self._context = browser.new_context(bypass_csp=False, **window)
        self._context.set_default_timeout(60_000)
        self.page: Page = self._context.new_page()
        self.page.on("console", lambda message: self.told.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.told.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.told.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, path: str) -> None:
        """Goes to a page of the service."""
        self.page.goto(f"{self.base}{path}")

    def list_violations(self) -> list[tuple[str, str]]:
        """What violates a rule of axe-core on the page that is open: the rule, and where."""
        # Through the debugger's door, for the page itself lets no script in that is not ours.
        session = self._context.new_cdp_session(self.page)
        if session.send("Runtime.evaluate", {"expression": "typeof axe"})["result"]["value"] == "undefined":
            session.send("Runtime.evaluate", {"expression": AXE})
        found = session.send("Runtime.evaluate", {"expression": FOUND, "awaitPromise": True, "returnByValue": True})
        return [
            (one["id"], json.dumps([node["target"] for node in one["nodes"]][:3])) for one in found["result"]["value"]
        ]

    def look(self, path: str, *, shows: str = "body") -> dict[str, object]:
        """What is wrong with a page for somebody, in each of WINDOWS, once it shows what a selector says."""
        found: dict[str, object] = {}
        self.open(path)
        self.page.wait_for_selector(shows)
        for width, scheme in WINDOWS:
            self.page.set_viewport_size({"width": width, "height": 900})
            self.page.emulate_media(color_scheme=scheme)
            if wrong := self.list_violations():
                found[f"{path} {width} {scheme}"] = wrong
            if self.is_too_wide():
                found[f"{path} is too wide at {width}"] = True
        return found

    def is_too_wide(self) -> bool:
        """Whether the page must be moved sideways."""
        return self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")

    def close(self) -> None:
        """Nothing was asked of others, no policy broken, no script failed, no dialog opened."""
        assert [url for url in self.asked if not url.startswith((self.base, "data:,"))] == []
        assert self.told == []
        self._context.close()

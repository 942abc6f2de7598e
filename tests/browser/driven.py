"""A browser without a window that does what tests say, over a pair of pipes (the DevTools protocol)."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--in-process-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-startup-window",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Names that lead to this machine, as those of a page that rebinds its own do; no other name leads anywhere.
    "--host-resolver-rules=MAP evil.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
)

AS_3_AND_4 = "import os, sys; a = sys.argv; os.dup2(int(a[1]), 3); os.dup2(int(a[2]), 4); os.execv(a[3], a[3:])"
"""The pipes become the numbers that a browser looks for."""

PATIENCE_S = 120.0


def installed() -> str:
    """The browser of this machine; skips where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser for tests: none of {', '.join(NAMES)}")
    return found


class Browser:
    """One that runs. What it says of a page goes to the page."""

    def __init__(self, commands: int, events: int) -> None:
        self._commands = commands
        self._events, self._came = events, b""
        self._count = 0
        self._tabs: dict[str, Tab] = {}

    @contextmanager
    def open_tab(self) -> Generator[Tab]:
        """A page in a profile of its own, which nobody had before and nobody has afterwards."""
        profile = self.send("", "Target.createBrowserContext", {})["browserContextId"]
        made = self.send("", "Target.createTarget", {"url": "about:blank", "browserContextId": profile})
        session = self.send("", "Target.attachToTarget", {"targetId": made["targetId"], "flatten": True})["sessionId"]
        found = self._tabs[session] = Tab(self, session)
        for domain in ("Network", "Log", "Runtime"):
            found.send(f"{domain}.enable")
        try:
            yield found
        finally:
            del self._tabs[session]
            self.send("", "Target.disposeBrowserContext", {"browserContextId": profile})

    def send(self, session: str, method: str, params: dict[str, Any]) -> Any:
        """The result of one command, to the browser itself or within the session of a page."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (found := self._next()).get("id") != self._count:
            if tab := self._tabs.get(found.get("sessionId", "")):
                tab.note(found)
        assert "error" not in found, found
        return found["result"]

    def close(self) -> None:
        os.close(self._events)
        os.close(self._commands)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._came:
            if not (more := os.read(self._events, 1 << 20)):
                raise EOFError
            self._came += more
        found, _, self._came = self._came.partition(b"\0")
        return json.loads(found)


class Tab:
    """One page. What it asked the network for is in `requests`."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._browser, self._session = browser, session

    def send(self, method: str, **params: Any) -> Any:
        """The result of one command."""
        return self._browser.send(self._session, method, params)

    def open(self, url: str) -> None:
        """Goes to an address."""
        self.send("Page.navigate", url=url)

    def run(self, code: str) -> Any:
        """What an expression of the page gives."""
        return self.send("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)["result"].get(
            "value"
        )

    def until(self, code: str, true: Callable[[Any], bool] = bool) -> Any:
        """What an expression gives, once that is as it should be."""
        end = time.monotonic() + PATIENCE_S
        while not true(found := self.run(code)):
            assert time.monotonic() < end, (code, found, self.errors)
            time.sleep(0.05)
        return found

    def note(self, event: dict[str, Any]) -> None:
        """Keeps what the browser says of the page."""
        params = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        if event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))


@contextmanager
def browsing(program: str, folder: Path) -> Generator[Browser]:
    """A browser that runs, with what it keeps in a folder."""
    (theirs_in, commands), (events, theirs_out) = os.pipe(), os.pipe()
    given = [fcntl.fcntl(one, fcntl.F_DUPFD, 10) for one in (theirs_in, theirs_out)]
    for one in (theirs_in, theirs_out):
        os.close(one)
    words = [*map(str, given), program, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder / 'profile'}"]
    with (
        (folder / "browser.log").open("wb") as log,
        subprocess.Popen([sys.executable, "-c", AS_3_AND_4, *words], pass_fds=given, stdout=log, stderr=log) as process,
    ):
        for one in given:
            os.close(one)
        found = Browser(commands, events)
        try:
            yield found
        finally:
            found.close()
            process.terminate()

"""How pages look, measured rather than compared with a stored picture, so that it holds with any fonts.

`CALLGRADE_SCREENSHOTS` names a folder for pictures of what was measured, in both colour schemes, for people to look at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.furnished import LONG, furnish
from tests.browser.paged import Visit

pytestmark = pytest.mark.needs_browser

WIDTHS = ((390, 844), (1_280, 800))
"""A phone and a laptop."""

MEASURE = (Path(__file__).parent / "measure.js").read_text("utf-8")

FULL = {
    "start": "/",
    "batches": "/batches",
    "calibration": "{calibration}",
    "batch": "{batch}",
    "running": "{running}",
    "summary": "{batch}/summary?assert=pass_rate%20%3E%3D%200.9",
    "traces": "{batch}/traces",
    "passed": "{batch}/traces/0",
    "failed": "{batch}/traces/7",
    "undecided": "{running}/traces/2",
    "not scored": "{running}/traces/5",
    "long": f"{{batch}}/traces/{LONG}",
    "kept scores": "/scores",
    "kept score": "{score}",
    "label": "/label?criterion=call_decision&item={item}",
    "disagreements": "/label/disagreements",
    "judges": "/judges",
    "judge": "/judges/result_groundedness",
    "not found": "/nowhere",
}
EMPTY = ("/", "/batches", "/calibrations", "/scores", "/label", "/label/disagreements", "/judges/result_groundedness")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    with furnish(tmp_path_factory.mktemp("home")) as (server, _, named):
        yield f"http://localhost:{server.port}", named


def sign_in(browser: Browser, base: str, key: str) -> Visit:
    visit = Visit(browser, base)
    visit.open("/sign-in")
    visit.page.locator("#key").fill(key)
    visit.page.locator("main form button").click()
    visit.page.wait_for_url("**/")
    return visit


def measure(visit: Visit, name: str, path: str) -> dict[str, Any]:
    """What is wrong with a page at each width, as it comes and with everything on it unfolded."""
    visit.open(path)
    found: dict[str, Any] = {}
    for state in ("", " unfolded"):
        if state:
            visit.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        for width, height in WIDTHS:
            visit.page.set_viewport_size({"width": width, "height": height})
            if wrong := visit.page.evaluate(MEASURE):
                found[f"{name} at {width}{state}"] = wrong
            for scheme in ("light", "dark") if (folder := os.environ.get("CALLGRADE_SCREENSHOTS")) else ():
                visit.page.emulate_media(color_scheme=scheme)
                picture = Path(folder, f"{name.replace('/', ' ')} {width} {scheme}{state}.png")
                visit.page.screenshot(path=picture, full_page=True)
    return found


def test_nothing_is_cut_overlaps_or_must_be_moved_sideways(site: tuple[str, dict[str, str]], browser: Browser) -> None:
    base, named = site
    visit, found = sign_in(browser, base, named["key"]), dict[str, Any]()
    for name, path in FULL.items():
        found |= measure(visit, name, path.format(**named))
    visit.page.context.close()
    visit = sign_in(browser, base, named["empty_key"])
    for path in EMPTY:
        found |= measure(visit, f"empty {path}", path)
    visit.page.context.close()
    found |= measure(Visit(browser, base), "sign in", "/sign-in")
    assert not found, json.dumps(found, indent=1)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<p style='width: 900px'>wide</p>", "the page is 9"),
        ("<p style='overflow: hidden; width: 40px; white-space: nowrap'>cut off at its end</p>", "cut: p"),
        (
            "<p style='overflow: hidden; width: 40px; white-space: nowrap; text-overflow: ellipsis'>cut, and says so</p>",
            "",
        ),
        ("<p>one line</p><p style='margin-top: -36px'>another</p>", "on top of each other: p."),
        ("<input><p style='margin-top: -20px'>over a field</p>", "on top of each other: input."),
        ("<p style='width: 40px; overflow-wrap: anywhere'>arguments</p>", "a broken word: p."),
        ("<p style='height: 900px'>far</p><a href='#x' data-first>first</a>", "the first failure is below the fold"),
        ("<p>one line</p><p>another</p><a href='#x' data-first>first</a>", ""),
    ],
)
def test_each_fault_is_found(browser: Browser, body: str, fault: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.set_content(f"<!doctype html>{body}")
    found = page.evaluate(MEASURE)
    page.close()
    assert [one.startswith(fault) for one in found] == ([True] if fault else []), found

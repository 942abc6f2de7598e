"""Pages of traces in a real browser: hostile texts do nothing, and keys, lights and folds do what they should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from service.engine import score
from service.web.run_file import render_run_file
from service.web.trace.build import ScoredTrace
from service.web.trace.run import build_run_view
from service.web.trace.stored import read_sent
from tests.browser.paged import Visit
from tests.web.hostile import build_hostile, list_hostile

pytestmark = pytest.mark.needs_browser

CASES = json.loads((Path(__file__).parents[2] / "service" / "demo" / "cases.json").read_text("utf-8"))
OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true })"
STOP = "document.activeElement.closest('[data-stop]').id"
OPENED = "[...document.querySelectorAll('details.run[open]')].map((one) => one.id)"


def show(browser: Browser, path: Path, scored: list[ScoredTrace]) -> Visit:
    view = build_run_view("A run", scored, frozenset(range(len(scored))))
    path.write_text(render_run_file(view), "utf-8")
    visit = Visit(browser, path.as_uri())
    visit.open("")
    expect(visit.page.locator("details.run")).to_have_count(len(scored))
    return visit


def build_demo() -> list[ScoredTrace]:
    return [ScoredTrace(score(case["request"]), *read_sent(case["request"])) for case in CASES]


def press(page: Page, keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_no_hostile_text_does_anything(browser: Browser, tmp_path: Path) -> None:
    scored = [one for _, text in list_hostile() for one in build_hostile(text)]
    visit = show(browser, tmp_path / "run.html", scored)
    run = visit.page.evaluate
    run(OPEN_ALL)
    run("document.querySelectorAll('*').forEach((one) => one.dispatchEvent(new Event('mouseover', {bubbles: true})))")
    assert run("window.hit") is None
    assert run("[document.scripts.length, document.styleSheets.length, document.forms.length]") == [1, 1, 1]
    assert run("document.querySelectorAll('iframe, img, svg, base, link, input, object, h1 ~ h1').length") == 0
    handlers = "[...one.attributes].some(({name}) => name.startsWith('on') || name === 'style')"
    assert run(f"[...document.querySelectorAll('*')].filter((one) => {handlers}).length") == 0
    assert run("location.href") == visit.base
    assert visit.asked == [visit.base]
    assert not visit.is_too_wide()
    visit.close()  # a policy that was broken would be told here


def test_keys_lead_through_traces_and_to_what_broke(browser: Browser, tmp_path: Path) -> None:
    visit = show(browser, tmp_path / "run.html", build_demo())
    for keys, told, wanted in (
        ("]", "document.activeElement.parentElement.id", "trace-1"),
        ("]]]]]]", OPENED, ["trace-7"]),
        ("f", STOP, "t7-text-2"),
        ("k", STOP, "t7-step-0"),
        ("j", STOP, "t7-text-2"),
        ("?", "document.getElementById('keys').open", True),
        ("?[", OPENED, ["trace-6"]),
    ):
        press(visit.page, keys)
        assert visit.page.evaluate(told) == wanted, keys
    visit.close()


def test_nothing_stands_in_the_way_of_readers(browser: Browser, tmp_path: Path) -> None:
    visit = show(browser, tmp_path / "run.html", [*build_demo(), *build_hostile("harmless")])
    visit.page.evaluate(OPEN_ALL)
    for width, scheme in ((400, "light"), (1400, "dark")):
        visit.page.set_viewport_size({"width": width, "height": 800})
        visit.page.emulate_media(color_scheme=scheme)
        assert visit.list_violations() == []
    visit.close()

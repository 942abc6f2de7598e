"""Pages of traces in a real browser: hostile texts do nothing, and keys, lights and folds do what they should."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from service.engine import score
from service.web.run_file import render_run_file
from service.web.trace.build import ScoredTrace
from service.web.trace.run import build_run_view
from service.web.trace.stored import read_sent
from tests.browser.driven import Tab
from tests.browser.paged import ASKED
from tests.web.hostile import build_hostile, list_hostile

pytestmark = pytest.mark.needs_browser

CASES = json.loads((Path(__file__).parents[2] / "service" / "demo" / "cases.json").read_text("utf-8"))
PRESS = "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: KEY, bubbles: true}))"


def show(page: Tab, path: Path, scored: list[ScoredTrace]) -> None:
    view = build_run_view("A run", scored, frozenset(range(len(scored))))
    path.write_text(render_run_file(view), "utf-8")
    page.open(path.as_uri())
    page.until("document.querySelectorAll('details.run').length", lambda found: found == len(scored))
    page.until("document.readyState", lambda found: found == "complete")


def build_demo() -> list[ScoredTrace]:
    return [ScoredTrace(score(case["request"]), *read_sent(case["request"])) for case in CASES]


def press(page: Tab, key: str) -> None:
    page.run(PRESS.replace("KEY", json.dumps(key)))


def test_no_hostile_text_does_anything(page: Tab, tmp_path: Path) -> None:
    scored = [one for _, text in list_hostile() for one in build_hostile(text)]
    path = tmp_path / "run.html"
    show(page, path, scored)
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    page.run(
        "document.querySelectorAll('*').forEach((one) => one.dispatchEvent(new Event('mouseover', {bubbles: true})))"
    )
    assert page.run("window.hit") is None
    assert page.run("[document.scripts.length, document.styleSheets.length, document.forms.length]") == [1, 1, 1]
    assert page.run("document.querySelectorAll('iframe, img, svg, base, link, input, object, h1 ~ h1').length") == 0
    assert (
        page.run(
            "[...document.querySelectorAll('*')].filter((one) => [...one.attributes].some("
            "({name}) => name.startsWith('on') || name === 'style')).length"
        )
        == 0
    )
    assert page.run("location.href") == path.as_uri()
    assert page.requests == [path.as_uri()]
    assert page.errors == []  # a policy that was broken would be told here
    assert page.run("document.documentElement.scrollWidth <= innerWidth")


def test_keys_go_to_the_steps_that_failed(page: Tab, tmp_path: Path) -> None:
    show(page, tmp_path / "run.html", build_demo())
    page.run("document.querySelectorAll('details.run').forEach((one) => { one.open = true })")
    shown = page.run(
        "[...document.querySelectorAll('[data-stop].fail')].filter((one) => one.checkVisibility()).map((one) => one.id)"
    )
    assert len(shown) > 1
    here = "document.activeElement.closest('[data-stop]').id"
    seen = []
    for key in ("n", "n", "p"):
        press(page, key)
        seen.append(page.run(here))
    assert seen == [shown[0], shown[1], shown[0]]


def test_keys_lead_through_traces_and_to_what_broke(page: Tab, tmp_path: Path) -> None:
    show(page, tmp_path / "run.html", build_demo())
    press(page, "]")
    assert page.run("document.activeElement.parentElement.id") == "trace-1"
    for _ in range(6):
        press(page, "]")
    assert page.run("[...document.querySelectorAll('details.run[open]')].map((one) => one.id)") == ["trace-7"]
    press(page, "f")
    assert page.run("document.activeElement.closest('[data-stop]').id") == "t7-text-2"
    press(page, "k")
    assert page.run("document.activeElement.closest('[data-stop]').id") == "t7-step-0"
    press(page, "j")
    assert page.run("document.activeElement.closest('[data-stop]').id") == "t7-text-2"
    press(page, "?")
    assert page.run("document.getElementById('keys').open")
    press(page, "?")
    press(page, "[")
    assert page.run("[...document.querySelectorAll('details.run[open]')].map((one) => one.id)") == ["trace-6"]
    assert page.errors == []


@pytest.mark.parametrize(("width", "theme"), [(400, "light"), (1400, "dark")])
def test_nothing_stands_in_the_way_of_readers(page: Tab, tmp_path: Path, width: int, theme: str) -> None:
    package = find_spec("axe_playwright_python")
    if package is None or package.origin is None:
        pytest.skip("axe-core is not installed")
    page.send("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
    page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    show(page, tmp_path / "run.html", [*build_demo(), *build_hostile("harmless")])
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    page.run((Path(package.origin).parent / "axe.min.js").read_text("utf-8"))
    found = page.run(
        ASKED + ".then(({violations}) => violations.map((one) => [one.impact, one.id, one.nodes[0].html]))"
    )
    assert [one for one in found if one[0] in ("serious", "critical")] == []

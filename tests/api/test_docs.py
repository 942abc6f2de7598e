"""The page of the contract: of one piece, without anything of elsewhere, and without markup made from data."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from service.web.rendering import STATIC
from tests.api.asgi_caller import Answer, Ask


class Parts(HTMLParser):
    """The scripts and styles of a page, and every attribute with what it says."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inside = {"script": list[str](), "style": list[str]()}
        self.attributes: list[tuple[str, str | None]] = []
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        self._open = tag

    def handle_data(self, data: str) -> None:
        if self._open in self.inside:
            self.inside[self._open].append(data)

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 (the parser's)
        self._open = ""


@pytest.fixture(scope="module")
def page(ask: Ask) -> Answer:
    return ask("GET", "/docs", headers={})


def test_it_names_no_address_of_elsewhere(page: Answer) -> None:
    assert page.headers["content-type"].startswith("text/html")
    text = page.body.decode()
    assert re.findall(r"(?:[a-z]+:)?//[\w.-]+\.\w+", text) == []
    references = [value for name, value in Parts(text).attributes if name in ("src", "href", "action")]
    assert references == ["data:,", "docs", "openapi.json"]


def test_its_policy_lets_its_own_parts_run_and_no_others(page: Answer) -> None:
    policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
    parts = Parts(page.body.decode()).inside
    for name in ("script", "style"):
        (text,) = parts[name]
        assert policy[f"{name}-src"] == f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert "unsafe" not in page.headers["content-security-policy"]


def test_what_it_shows_is_text_and_the_key_is_kept_nowhere(page: Answer) -> None:
    (script,) = Parts(page.body.decode()).inside["script"]
    for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Storage", "cookie"):
        assert word not in script
    assert page.headers["referrer-policy"] == "no-referrer"


def list_colours(style: str) -> list[str]:
    return re.findall(r"--[a-z-]+: [^;]+;|prefers-color-scheme: \w+", style)


def test_it_looks_as_the_other_pages_do(page: Answer) -> None:
    own, base = Parts(page.body.decode()).inside["style"][0], (STATIC / "base.css").read_text("utf-8")
    assert own.startswith(base)
    assert len(list_colours(base)) > 30
    assert list_colours(own) == list_colours(base)
    assert list_colours((STATIC / "style.css").read_text("utf-8")) == []

"""Hostile texts stay texts on the page of a trace, whatever part of it they are."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from service.web.run_file import render_run_file
from service.web.trace.comparison import ROW_WORDS
from service.web.trace.marks import escape_invisible
from service.web.trace.run import build_run_view
from tests.web.hostile import build_hostile, list_hostile

INLINE = ("a", "span", "sup", "td", "tr", "details", "summary", "p", "div", "pre", "br", "code", "mark")
ID = re.compile(r"(t\d+-)?[a-z]+(-\d+)?|keys|main")
LINKS = re.compile(r"(t\d+-\d+ ?)+")
HOSTILE = list_hostile()


class Page(HTMLParser):
    """What a page consists of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.shown: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.shown.append(data)

    def of(self, name: str) -> list[str]:
        return [value for attribute, value in self.attributes if attribute == name]


def render(text: str) -> str:
    return render_run_file(build_run_view("A run", build_hostile(text), frozenset([0, 1])))


HARMLESS = Page(render("harmless"))


@pytest.mark.parametrize("text", [text for _, text in HOSTILE], ids=[name for name, _ in HOSTILE])
def test_a_page_has_the_elements_that_it_has_with_a_harmless_text(text: str) -> None:
    page = Page(render(text))
    marked = {*INLINE}  # more or fewer places
    assert {tag: n for tag, n in page.tags.items() if tag not in marked} == {
        tag: n for tag, n in HARMLESS.tags.items() if tag not in marked
    }
    assert {name for name, _ in page.attributes} == {name for name, _ in HARMLESS.attributes}
    assert [one for one in page.of("id") if not ID.fullmatch(one)] == []
    assert [one for one in page.of("data-links") if not LINKS.fullmatch(one)] == []
    assert [one for one in page.of("href") if not one.startswith("#")] == []
    assert {word for one in page.of("class") for word in one.split()} <= CLASSES
    page_text = "".join(page.shown)
    assert page_text.isprintable() or not set("\u202e\u200b\x00\x1b\ud800") & set(page_text)


CLASSES = {word for one in [*HARMLESS.of("class"), "fold more"] for word in one.split()}
CLASSES |= {f"row-{status}" for status in ROW_WORDS}


@pytest.mark.parametrize("text", [text for _, text in HOSTILE], ids=[name for name, _ in HOSTILE])
def test_the_text_is_there_to_be_read(text: str) -> None:
    shown = "".join(Page(render(text)).shown)
    assert shown.count(escape_invisible(text)) >= 10


@pytest.mark.parametrize("text", ["harmless", *[text for _, text in HOSTILE]])
def test_every_link_leads_to_a_part_that_is_there_once(text: str) -> None:
    page = Page(render(text))
    ids = Counter(page.of("id"))
    assert {one for one, count in ids.items() if count > 1} == set()
    assert {one[1:] for one in page.of("href")} <= ids.keys()

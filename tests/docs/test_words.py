"""One word for one thing: no text that users see has a word of words.yaml."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from tests.docs.surfaces import Text, list_texts

TABLE = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text("utf-8"))
WORDS = {
    re.compile(pattern, re.IGNORECASE): instead for pattern, instead in (TABLE["phrases"] | TABLE["names"]).items()
}
EXCEPTIONS = [one["place"] for one in TABLE["exceptions"]]
MOST_EXCEPTIONS = 20


def find_hits(texts: list[Text]) -> list[tuple[str, str, str]]:
    """The place of each hit, what was hit, and what to write instead."""
    return [
        (one.place, found[0], instead)
        for one in texts
        for word, instead in WORDS.items()
        for found in word.finditer(one.text)
    ]


@pytest.fixture(scope="module")
def texts() -> list[Text]:
    return list_texts()


def test_no_text_has_a_word_that_users_do_not_meet(texts: list[Text]):
    hits = find_hits(texts)
    assert [hit for hit in hits if not any(fnmatch(hit[0], place) for place in EXCEPTIONS)] == []
    assert [place for place in EXCEPTIONS if not any(fnmatch(hit[0], place) for hit in hits)] == []
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS


@pytest.mark.parametrize(("place", "words"), TABLE["seen"])
def test_each_surface_is_looked_at(place: str, words: str, texts: list[Text]):
    assert any(fnmatch(one.place, place) and words in one.text for one in texts)


@pytest.mark.parametrize(("kind", "found"), [("hits", True), ("clean", False)])
def test_words_are_found_and_ordinary_ones_are_not(kind: str, found: bool):
    assert [text for text in TABLE[kind] if bool(find_hits([Text("here", text)])) is not found] == []

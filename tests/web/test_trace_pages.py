"""The page of a trace on a site: what was sent beside its report, and what the page cuts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from service.store.database import Database
from tests.web.site import Visitor, build_call, fill, strip_tags

LARGE = "x" * 50_000


def build_large() -> dict[str, Any]:
    """A trace with one large result, one large argument and a large text."""
    messages = [
        {"role": "user", "content": f"Look. {LARGE}"},
        build_call("look", {"a/b": LARGE, "small": 1}, 1),
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"log": LARGE, "cents": 5400})},
        {"role": "assistant", "content": "It is $12.00 in cents."},
    ]
    expected = {"calls": [{"tool": "look", "args": {"a/b": LARGE, "small": 2}}]}
    return {
        "custom_id": "large",
        "trace": {"format": "openai", "messages": messages},
        "expected": expected,
        "judges": "off",
    }


@pytest.fixture(scope="module")
def large(database: Database) -> str:
    return fill(database, [build_large()])


def test_the_page_shows_what_the_twin_has(visitor: Visitor, batch: str) -> None:
    item = visitor.ask("GET", f"/v1/batches/{batch}/items/3").json
    text = strip_tags(visitor.open(f"/runs/{batch}/traces/3").body.decode())
    report = item["report"]
    assert report["verdict"] == "fail"
    assert f"✗ fail Failed at {report['first_failing_stage']}." in text
    assert f"Score {report['score']:.2f}" in text
    assert "cents: expected 5403, got 54030" in text
    for message in item["request"]["trace"]["messages"]:
        if message["role"] == "user":
            assert message["content"] in text


def test_neighbours_are_those_of_the_list_it_was_opened_from(visitor: Visitor, batch: str) -> None:
    page = visitor.open(f"/runs/{batch}/traces/6?verdict=fail&stage=arguments").body.decode()
    links = dict(re.findall(r'<a rel="(prev|next)" href="([^"]*)"', page))
    assert {name: link.replace("&amp;", "&") for name, link in links.items()} == {
        "prev": f"/runs/{batch}/traces/3?verdict=fail&stage=arguments",
        "next": f"/runs/{batch}/traces/9?verdict=fail&stage=arguments",
    }


def test_what_is_cut_can_be_downloaded_whole(visitor: Visitor, large: str) -> None:
    page = visitor.open(f"/runs/{large}/traces/0").body.decode()
    assert len(page) < 50_000
    links = set(re.findall(r'href="([^"]*/payload\?at=[^"]*)"', page))
    found = {link.rpartition("at=")[2]: visitor.open(link) for link in links}
    assert {at: answer.status for at, answer in found.items()} == dict.fromkeys(
        ["/messages/0/text", "/steps/0/call/arguments/a~1b", "/steps/0/result/content", "/expected"], 200
    )
    for answer in found.values():
        assert LARGE in answer.body.decode()
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "at", ["", "/steps/7/result/content", "/steps/0/result/content/none", "/state/final", "x", "/%00"]
)
def test_what_is_not_there_cannot_be_downloaded(visitor: Visitor, large: str, at: str) -> None:
    assert visitor.open(f"/runs/{large}/traces/0/payload?at={at}").status == 404

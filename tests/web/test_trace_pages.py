"""The page of a trace on a site: what was sent beside its report."""

from __future__ import annotations

import re

from tests.web.site import Visitor, strip_tags


def test_the_page_shows_what_the_twin_has(visitor: Visitor, batch: str) -> None:
    item = visitor.ask("GET", f"/v1/batches/{batch}/items/3").json
    text = strip_tags(visitor.open(f"/batches/{batch}/traces/3").body.decode())
    report = item["report"]
    assert report["verdict"] == "fail"
    assert f"✗ fail Failed at {report['first_failing_stage']}." in text
    assert f"Score {report['score']:.2f}" in text
    assert "cents: expected 5403, got 54030" in text
    for message in item["request"]["trace"]["messages"]:
        if message["role"] == "user":
            assert message["content"] in text


def test_neighbours_are_those_of_the_list_it_was_opened_from(visitor: Visitor, batch: str) -> None:
    page = visitor.open(f"/batches/{batch}/traces/6?verdict=fail&stage=arguments").body.decode()
    links = dict(re.findall(r'<a rel="(prev|next)" href="([^"]*)"', page))
    assert {name: link.replace("&amp;", "&") for name, link in links.items()} == {
        "prev": f"/batches/{batch}/traces/3?verdict=fail&stage=arguments",
        "next": f"/batches/{batch}/traces/9?verdict=fail&stage=arguments",
    }

"""What pages show: the numbers of their twins, every link leading somewhere, nothing broken by what a trace says."""

from __future__ import annotations

import asyncio
import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from service.api.app import create_app
from service.api.page_route import PageRoute
from service.reading.packaged_files import explain
from service.reporting.numbers import render_number
from service.settings import Settings
from service.store.database import Database
from service.web.app import add_pages
from service.web.rendering import format_count, format_share
from tests.api.asgi_caller import Answer
from tests.tables import DATA, read_yaml
from tests.web.site import NOBODY, TOKEN, Visitor, build_request, fill, list_links, strip_tags

TABLES = read_yaml(DATA / "web" / "pages.yaml")


def twin_of(visitor: Visitor, page: Answer) -> Any:
    """What the operation gives that a page names as its twin."""
    found = re.search(r'<link rel="alternate" type="application/json" href="([^"]*)">', page.body.decode())
    assert found
    answer = visitor.ask("GET", found[1].replace("&amp;", "&"))
    assert answer.status == 200, answer.body
    return answer.json


@pytest.mark.parametrize("path", TABLES["pages"])
def test_a_page_is_whole_and_holds_nothing_inline(visitor: Visitor, batch: str, path: str) -> None:
    answer = visitor.open(path.format(batch=batch))
    text = answer.body.decode()
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'self'; ")
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert text.endswith("</html>")
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|https?://", text)
    assert all("src=" in one for one in re.findall(r"<script[^>]*>", text))


def test_every_link_leads_somewhere(visitor: Visitor, batch: str) -> None:
    links = {path: set(list_links(visitor.open(path.format(batch=batch)).body.decode())) for path in TABLES["pages"]}
    assert all(links.values())
    told = {link: visitor.open(link).status for link in set().union(*links.values())}
    assert {link: status for link, status in told.items() if status != 200} == {}


def test_the_page_of_a_run_has_the_numbers_of_its_twin(visitor: Visitor, batch: str) -> None:
    page = visitor.open(f"/batches/{batch}")
    text, told = strip_tags(page.body.decode()), twin_of(visitor, page)
    whole, rate = told["whole"], told["whole"]["passed"]
    assert f"pass rate {format_share(rate['value'])}" in text
    assert f"95 % interval {format_share(rate['low'])} to {format_share(rate['high'])}" in text
    assert f"with {rate['open']} open: {format_share(rate['worst'])} to {format_share(rate['best'])}" in text
    assert whole["verdicts"]
    for verdict, count in whole["verdicts"].items():
        assert f"{'could not be scored' if verdict == 'error' else verdict} {format_count(count)}" in text
    for stage in whole["stages"]:
        counts = f"{stage['passed']} passed, {stage['open']} undecided, {stage['failed']} failed"
        assert f"{stage['stage']} {format_share(stage['rate']['value'])} {counts}" in text
    for one in told["failures"]:
        meaning, fix = explain(one["finding"]) or ("", "")
        found = f"{one['finding']} {html.escape(meaning)} What to do: {html.escape(fix)}"
        assert f"{one['count']} {one['stage']} {found} {one['tool'] or 'no call'}" in text


def test_what_is_not_finished_is_counted_as_such_wherever_a_run_is_summed_up(
    visitor: Visitor, database: Database
) -> None:
    requests = [build_request(n) for n in (0, 1, 2, NOBODY, 4, 5, 6, 7)]
    running = fill(database, requests, over=False, waiting=1)
    page = visitor.open(f"/batches/{running}")
    whole = twin_of(visitor, page)["whole"]
    worst, best = whole["passed"]["worst"], whole["passed"]["best"]
    gates = [f"pass_rate >= {worst}", f"pass_rate >= {(worst + best) / 2}", f"pass_rate > {best}"]
    query = urlencode({"assertions": json.dumps(gates)})
    summary = visitor.open(f"/v1/batches/{running}/summary?{query}").json
    assert (whole["unfinished"], whole["items"], whole["verdicts"]["error"]) == (2, 7, 1)
    assert (summary["unfinished"], summary["rates"]["cases"], summary["unscored"]) == (2, 6, 1)
    assert whole["passed"] == pytest.approx(summary["rates"]["passed"])
    assert whole["verdicts"] == summary["rates"]["verdicts"] | {"error": 1}
    assert whole["passed"]["open"] >= 3
    assert [one["status"] for one in summary["gate"]["results"]] == ["passed", "undecided", "failed"]
    assert "not finished 2" in strip_tags(page.body.decode())


def test_every_count_leads_to_as_many_traces(visitor: Visitor, batch: str) -> None:
    text = visitor.open(f"/batches/{batch}").body.decode()
    links = re.findall(r'<a href="(/batches/[^"]*/traces\?[^"]*)">([0-9]+)(?: failed)?</a>', text)
    assert len(links) >= 6
    for link, count in links:
        assert f"{count} of " in visitor.open(link.replace("&amp;", "&")).body.decode(), link


def test_the_list_is_paged_to_its_end_without_a_gap(visitor: Visitor, batch: str) -> None:
    path, seen = f"/batches/{batch}/traces?limit=25", []
    while path:
        text = visitor.open(path).body.decode()
        seen += [int(n) for n in re.findall(r'<td data-label="#"[^>]*>(\d+)</td>', text)]
        onwards = re.search(r'<a rel="next" href="([^"]*)"', text)
        path = onwards[1].replace("&amp;", "&") + "&limit=25" if onwards else ""
    assert seen == list(range(60))


def test_a_summary_holds_the_gate_that_is_asked_for(visitor: Visitor, batch: str) -> None:
    page = visitor.open(f"/batches/{batch}/summary?assert=pass_rate%20%3E%3D%200.99%0Atool_name.score%20%3E%3D%200.1")
    text, told = strip_tags(page.body.decode()), twin_of(visitor, page)
    assert [one["status"] for one in told["gate"]["results"]] == ["failed", "passed"]
    for one in told["gate"]["results"]:
        assert f"{one['status']} {render_number(one['actual'])}" in text
    refused = visitor.open(f"/batches/{batch}/summary?assert=nonsense")
    assert refused.status == 422
    assert "nonsense" in strip_tags(refused.body.decode())


@pytest.mark.parametrize(("path", "status"), TABLES["absent"])
def test_what_is_not_there_is_told_as_a_page(visitor: Visitor, batch: str, path: str, status: int) -> None:
    answer = visitor.open(path.format(batch=batch))
    assert answer.status == status
    assert answer.body.endswith(b"</html>")
    assert answer.headers["content-security-policy"]


LOGS = [
    ("a log", json.dumps(build_request(1)["trace"])),
    ("a log that names no format", json.dumps({k: v for k, v in build_request(1)["trace"].items() if k != "format"})),
    ("a request", json.dumps(build_request(3))),
    ("a list of messages", json.dumps(build_request(1)["trace"]["messages"])),
    ("lines", "\n".join(json.dumps(build_request(n)["trace"]) for n in (1, 2))),
]


@pytest.mark.parametrize("text", [text for _, text in LOGS], ids=[name for name, _ in LOGS])
def test_a_log_is_pasted_and_scored(visitor: Visitor, text: str) -> None:
    answer = visitor.fill_in("/", "/score", text=text)
    assert answer.status == 200
    assert "not saved" in answer.body.decode()
    assert "refund" in strip_tags(answer.body.decode())


@pytest.mark.parametrize("text", ["", "nonsense", "{", '{"a": 1}', '{"trace": {"format": "openai"}}', "[" * 100_000])
def test_what_cannot_be_scored_is_told_beside_the_text(visitor: Visitor, text: str) -> None:
    answer = visitor.fill_in("/", "/score", text=text)
    assert 400 <= answer.status < 500
    assert "could not be scored" in answer.body.decode()


def build_hostile(texts: list[str]) -> list[dict[str, Any]]:
    """Requests whose every text is hostile: names, arguments, results, answers, tags."""
    found: list[dict[str, Any]] = []
    for text in texts:
        one = build_request(len(found) * 3)
        name = text.replace("\0", "") or "empty"
        one["trace"]["messages"][0]["content"] = name
        one["trace"]["messages"][1]["tool_calls"][0]["function"] |= {
            "name": name,
            "arguments": json.dumps({"order_id": name, name: name}),
        }
        one["trace"]["messages"][2]["content"] = json.dumps({"cents": name})
        one["trace"]["messages"][3]["content"] = name
        one["tags"] = {"difficulty": name, "group": name}
        found.append({"custom_id": f"{name[:100]} {len(found)}", **one})
    return found


@pytest.mark.shared_data
def test_hostile_texts_are_text_wherever_they_stand(visitor: Visitor, database: Database, shared_data: Path) -> None:
    lines = (shared_data / "hostile" / "blns.jsonl").read_text("utf-8").splitlines()
    lines += (shared_data / "hostile" / "injections.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"][:500] for line in lines if line]
    requests = build_hostile([text for text in texts if "\0" not in text])
    batch = fill(database, requests, name="<script>alert(1)</script>")
    paths = [f"/batches/{batch}", f"/batches/{batch}/traces?limit=500", "/", "/batches", f"/batches/{batch}/summary"]
    paths += [f"/batches/{batch}/traces/{n}" for n in range(0, len(requests), 7)]
    for path in paths:
        check_harmless(visitor, path)


def check_harmless(visitor: Visitor, path: str) -> None:
    """Nothing on a page runs or loads anything but our own scripts."""
    answer = visitor.open(path)
    text = answer.body.decode()
    assert answer.status == 200, path
    assert len(re.findall(r"<script", text, re.IGNORECASE)) == len(
        re.findall(r'<script src="/static/[a-z]+\.js\?v=', text)
    ), path
    assert not re.search(
        r"<(?:img|iframe|object|embed|base|meta http|link rel=import|video|audio|marquee)", text, re.IGNORECASE
    ), path
    assert not re.search(r"<[a-z][^<>]*\son[a-z]+\s*=", text, re.IGNORECASE), path


@pytest.mark.parametrize(("method", "path", "accept", "status", "kind"), TABLES["nowhere"])
def test_an_address_of_nothing_is_told_to_browsers_as_a_page(
    visitor: Visitor, method: str, path: str, accept: str, status: int, kind: str
) -> None:
    answer = visitor.ask(method, path, content_type="application/json", accept=accept)
    assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (status, kind)


def test_pages_are_routes_that_ask_who_comes(visitor: Visitor) -> None:
    pages = [route for route in visitor.app.routes if isinstance(route, PageRoute)]
    assert len(pages) >= 15
    public = {route.path for route in pages if route.public}
    assert public == {"/sign-in", "/sign-in/session", "/static/{name}", "/{path:path}"}


@pytest.mark.parametrize("always", [False, True])
def test_what_is_pasted_is_kept_only_where_that_is_ticked(
    database: Database, runner: asyncio.Runner, always: bool
) -> None:
    settings = Settings(store_scores=always)
    visitor = Visitor(add_pages(create_app(settings, database=database), token=TOKEN), runner)
    visitor.enter()

    def list_kept() -> list[str]:
        return [one["id"] for one in visitor.open("/v1/scores").json["data"]]

    before = list_kept()
    for text in (json.dumps(build_request(3, store=True)), json.dumps(build_request(3)["trace"])):
        assert "not saved" in visitor.fill_in("/", "/score", text=text).body.decode()
    assert list_kept() == before
    text = json.dumps(build_request(3, store=False))
    scored = visitor.fill_in("/", "/score", text=text, keep="yes").body.decode()
    (new,) = set(list_kept()) - {*before}
    assert f'saved as <a href="/scores/{new}">' in scored
    kept = visitor.open(f"/scores/{new}")
    assert kept.status == 200
    assert "cents: expected 5403, got 54030" in strip_tags(kept.body.decode())
    assert visitor.open(f"/label?item={new}&criterion=tool_name").status == 200
    assert visitor.open("/scores/score_x").status == 404


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

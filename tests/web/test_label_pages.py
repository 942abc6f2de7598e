"""Labelling, settling and trusting a judge, from the pages alone and without a script."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest

from service.engine import Engine
from service.fits.live import LiveFits
from service.registry import Registry
from service.store.access.keys import Keys, Scope
from service.store.database import Database
from service.store.installed_fits import InstalledFits
from service.web.app import add_pages
from service.wiring import build_demo_judging
from tests.api.asgi_caller import LINES, Ask, jsonl
from tests.api.played_client import PlayedClient
from tests.api.test_fits import fit
from tests.api.test_fits import verdict as verdict_of
from tests.api.test_labels import body
from tests.stores import open_new_store
from tests.web.site import TOKEN, Visitor, read_forms, strip_tags

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


@dataclass
class Site:
    client: PlayedClient
    visitor: Visitor
    restart: Callable[[Database], PlayedClient]

    def submit(self, count: int) -> str:
        """A batch that a judge has looked at: every other answer is wrong."""
        made = self.client("POST", "/v1/batches", jsonl(*[body(n, right=n % 2 == 0) for n in range(count)]), LINES)
        self.client.work()
        return made.json["id"]

    def submit_by_key(self) -> str:
        """A batch of a tenant, and an admin of it in whose name the client asks from then on."""
        _, key = Keys(self.client.database).create(name="root", tenant="t", scopes=("admin",))
        self.client = self.restart(self.client.database)  # one that has not seen that there were no keys
        self.client.key = key
        return self.submit(1)

    def sign_in(self, scope: Scope) -> tuple[str, Visitor]:
        """Somebody with a key of the same tenant that may do this alone, and the name of the key."""
        made, key = Keys(self.client.database).create(name="k", tenant="t", scopes=(scope,))
        visitor = Visitor(self.client.app, self.visitor.runner)
        signed = visitor.fill_in("/sign-in", "/sign-in", key=key)
        assert signed.status == 303, signed.body
        return made.id, visitor

    def label(self, path: str, word: str, **fields: str) -> str:
        """Answers what a page asks; the page that comes next."""
        answer = self.visitor.fill_in(path, "/label", label=word, **fields)
        assert answer.status == 303, answer.body
        return answer.headers["location"]

    def text(self, path: str) -> str:
        answer = self.visitor.open(path)
        assert answer.status == 200, answer.body
        return answer.body.decode()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store = open_new_store(tmp_path)
    engine = Engine(Registry(), judging=build_demo_judging(), fits=LiveFits([], InstalledFits(store), max_age_days=0))
    with asyncio.Runner() as runner:

        def start(database: Database) -> PlayedClient:
            made = PlayedClient(Ask(runner.run), database, engine=engine)
            add_pages(made.app, token=TOKEN)
            return made

        client = start(store)
        visitor = Visitor(client.app, runner)
        assert visitor.enter().status == 303
        yield Site(client, visitor, start)
    store.close()


def test_ten_items_are_labelled_blind(site: Site) -> None:
    batch, path, seen = site.submit(10), "/label?criterion=result_groundedness", set[str]()
    for n in range(10):
        text = site.text(path)
        assert n > 0 or "The judge answered" not in text
        item = read_forms(text)["/label"]["item"]
        right = int(item.removeprefix(f"{batch}/")) % 2 == 0
        assert ("$54.00" in text) is right
        seen.add(item)
        path = site.label(path, "pass" if right else "fail", failing_step="" if right else "1", claim="$77.00")
        assert "The judge answered" in site.text(path)
    assert seen == {f"{batch}/{n}" for n in range(10)}
    assert "Nothing is left to label" in strip_tags(site.text(path))
    labels = site.client("GET", "/v1/labels", limit=100).json["data"]
    assert len(labels) == 10
    assert all(one["blind"] for one in labels)
    assert {one["failing_step"] for one in labels} == {None, 0}


def test_the_judge_is_not_on_the_page_before_the_answer(site: Site) -> None:
    site.submit(2)
    text = site.text("/label?criterion=result_groundedness")
    task = site.client("GET", "/v1/labels/next", criterion="result_groundedness").json
    reasons = [one["report"] for one in _results(site)]
    for report in reasons:
        [result_groundedness] = [one for one in report["criteria"] if one["id"] == "result_groundedness"]
        reason = result_groundedness["outcomes"][0]["outcome"]["judge"]["reason"]
        assert reason
        assert reason not in text
    assert task["item"] in text


def _results(site: Site) -> list[dict[str, object]]:
    [batch] = site.client("GET", "/v1/batches").json["data"]
    lines = site.client("GET", f"/v1/batches/{batch['id']}/results").body.splitlines()
    return [json.loads(line) for line in lines]


def test_a_label_is_taken_back_and_its_item_comes_again(site: Site) -> None:
    site.submit(3)
    item = read_forms(site.text("/label?criterion=result_groundedness"))["/label"]["item"]
    after = site.label("/label?criterion=result_groundedness", "fail")
    back = site.visitor.fill_in(after, "/label/undo").headers["location"]
    assert read_forms(site.text(back))["/label"]["item"] == item
    assert site.client("GET", "/v1/labels").json["data"] == []


def test_people_differ_and_somebody_settles_it(site: Site) -> None:
    batch = site.submit(2)
    for annotator, word in (("ana", "pass"), ("ben", "fail")):
        site.label(
            f"/label?criterion=result_groundedness&annotator={annotator}&item={batch}/1",
            word,
            note=f"{annotator} says so",
        )
    text = strip_tags(site.text("/label/disagreements?annotator=cleo"))
    assert "ana says so" in text
    assert "ben says so" in text
    answer = site.visitor.fill_in("/label/disagreements?annotator=cleo", "/label/disagreements", label="pass")
    assert answer.headers["location"] == "/label/disagreements?annotator=cleo"
    assert "Nothing is left to settle" in strip_tags(site.text(answer.headers["location"]))
    [last] = site.client("GET", "/v1/labels", annotator="cleo").json["data"]
    assert (last["source"], last["blind"], last["label"]) == ("adjudication", False, "pass")
    judge = site.text("/judges/result_groundedness")
    assert f'href="/batches/{batch}/traces/1"' in judge
    assert "ana says so" in strip_tags(judge)


def test_a_fit_is_installed_and_a_verdict_changes(site: Site) -> None:
    page, name = "/judges/result_groundedness", "result_groundedness"
    assert verdict_of(site.client) == (False, "uncalibrated")
    wrong = site.visitor.fill_in(page, f"/judges/{name}/install", fit="{}", calibration="")
    assert (wrong.status, "/fits/0" in wrong.body.decode()) == (422, True)
    made = site.visitor.fill_in(page, f"/judges/{name}/install", fit=fit().model_dump_json(), calibration="")
    assert made.status == 303, made.body
    assert verdict_of(site.client) == (True, "calibrated")
    assert fit().id in site.text(page)
    back = site.visitor.fill_in(page, f"/judges/{name}/rollback")
    assert back.status == 303, back.body
    assert verdict_of(site.client) == (False, "uncalibrated")


def test_hostile_texts_stay_texts(site: Site) -> None:
    row = {"id": HOSTILE, "criterion": HOSTILE, "group": "g", "payload": {"a": HOSTILE}, "answer": HOSTILE}
    labels = [{"annotator": HOSTILE, "label": True, "note": HOSTILE}, {"annotator": "b", "label": False}]
    lines = jsonl({**row, "labels": labels})
    assert site.client("POST", "/v1/labels/import", lines, LINES).status == 200
    opened = site.text(f"/label?{urlencode({'item': HOSTILE, 'criterion': HOSTILE})}")
    assert "If it fails: at which words" in opened  # it has no step to choose from
    for path in ("/label", "/label/disagreements", "/judges", "/label?annotator=%3Cscript%3E"):
        text = site.text(path)
        assert "<script>alert" not in text
        assert "<img" not in text
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", re.sub(r"&[a-z#0-9]+;[^<]*", "", text))


def test_who_may_not_label_sees_no_annotator(site: Site) -> None:
    batch = site.submit_by_key()
    given = {
        "item": f"{batch}/0",
        "criterion": "result_groundedness",
        "label": "fail",
        "annotator": "ana",
        "note": "ana says so",
    }
    assert site.client("POST", "/v1/labels", json.dumps(given).encode()).status == 200
    _, own = site.sign_in("calibrate")
    page = own.open("/judges/result_groundedness")
    assert page.status == 200
    text = page.body.decode()
    assert f'href="/batches/{batch}/traces/0"' in text
    assert "ana" not in strip_tags(text).split()
    assert "ana says so" not in text


def test_a_key_that_is_no_admin_labels_as_itself_on_pages(site: Site) -> None:
    batch = site.submit_by_key()
    name, own = site.sign_in("label")
    path = f"/label?criterion=result_groundedness&item={batch}/0"
    assert own.open(path + "&annotator=ana").status == 403
    text = own.open(path).body.decode()
    assert "You label as" not in text
    assert own.fill_in(path, "/label", label="fail", annotator="ana").status == 403
    assert own.fill_in(path, "/label", label="fail").status == 303
    [label] = site.client("GET", "/v1/labels").json["data"]
    assert label["annotator"] == name

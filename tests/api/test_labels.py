"""Labels over HTTP: from a batch or a kept score to what is labelled next, agreement, export and import."""

from __future__ import annotations

from collections.abc import Iterator
from secrets import token_hex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.calibration.predictions import read_judged_set
from service.settings import Settings
from service.store.access.keys import Keys
from service.store.database import Database
from tests.api.asgi_caller import JSON, LINES, Ask, jsonl, list_pointers
from tests.api.played_client import SMALL, PlayedClient
from tests.labelled import item
from tests.stores import open_new_store
from tests.tables import DATA, read_yaml

TABLES = read_yaml(DATA / "api" / "labels.yaml")


def trace(number: int, *, right: bool) -> dict[str, Any]:
    """A call, its result, and an answer that says what it returned, or another amount."""
    call = {"name": "look_up", "arguments": {"order": number}}
    events = [
        {"user": f"What did order {number} cost?"},
        {"call": call, "result": {"order": number, "amount_cents": 5400}},
        {"assistant": f"Order {number} cost ${54 if right else 77}.00."},
    ]
    return {"format": "callgrade", "id": f"t{number}", "events": events}


def body(number: int, *, right: bool = True, **more: Any) -> dict[str, Any]:
    return {"trace": trace(number, right=right), **more}


@pytest.fixture
def client(ask: Ask, store: Database) -> PlayedClient:
    return PlayedClient(ask, store)


def score(client: PlayedClient, number: int = 1, **more: Any) -> str:
    answer = client("POST", "/v1/score", body(number, store=True, **more))
    assert answer.status == 200, answer.body
    return answer.headers["x-callgrade-score-id"]


def submit(client: PlayedClient, count: int) -> str:
    made = client("POST", "/v1/batches", jsonl(*[body(n, right=n % 2 == 0) for n in range(count)]), LINES)
    assert made.status == 202, made.body
    client.work()
    return made.json["id"]


def label(client: PlayedClient, item: str, word: str = "pass", annotator: str | None = "ana", **more: Any) -> Any:
    sent = {"item": item, "criterion": "result_groundedness", "label": word, "annotator": annotator, **more}
    answer = client("POST", "/v1/labels", sent)
    assert answer.status == 200, answer.body
    return answer.json


# Kept scores.


def test_a_score_is_kept_where_the_request_says_so(client: PlayedClient) -> None:
    plain = client("POST", "/v1/score", body(1))
    assert "x-callgrade-score-id" not in plain.headers
    name = score(client, tags={"suite": "night"})
    [listed] = client("GET", "/v1/scores").json["data"]
    assert (listed["id"], listed["rubric"], listed["tags"]) == (name, "four_step@2", {"suite": "night"})
    whole = client("GET", f"/v1/scores/{name}").json
    assert whole["request"] == body(1, store=True, tags={"suite": "night"})
    assert whole["report"]["verdict"] == listed["verdict"]
    assert client("DELETE", f"/v1/scores/{name}").status == 204
    assert client("GET", f"/v1/scores/{name}").problem["status"] == 404


def test_the_report_has_the_same_bytes_whether_it_is_kept_or_not(client: PlayedClient) -> None:
    kept, plain = (client("POST", "/v1/score", body(1, judges="off", store=store)) for store in (True, False))
    assert kept.body == plain.body
    name = kept.headers["x-callgrade-score-id"]
    assert kept.body in client("GET", f"/v1/scores/{name}").body


def test_a_setting_keeps_all_that_does_not_say_otherwise(ask: Ask, store: Database) -> None:
    client = PlayedClient(ask, store, settings=Settings(store_scores=True))
    for judges in ("off", "live"):
        client("POST", "/v1/score", body(1, judges=judges))
        client("POST", "/v1/score", body(2, judges=judges, store=False))
    found = [client("GET", f"/v1/scores/{one['id']}").json for one in client("GET", "/v1/scores").json["data"]]
    assert sorted(one["request"]["trace"]["id"] for one in found) == ["t1", "t1"]


# Labels.


def test_a_kept_score_is_labelled_blind_and_the_judge_is_told_after(client: PlayedClient) -> None:
    name = score(client, right=False)
    task = client("GET", "/v1/labels/next", annotator="ana", criterion="result_groundedness").json
    assert (task["item"], task["criterion"], task["source"]) == (name, "result_groundedness", "sample")
    assert "judge" not in task
    assert task["request"]["trace"] == trace(1, right=False)
    assert task["question"]
    assert [one["value"] for one in task["labels"]] == sorted([one["value"] for one in task["labels"]], reverse=True)
    told = label(client, name, "fail", blind=True, claim="$77.00", failing_step=0, source=task["source"])
    assert (told["judge"]["passed"], told["judge"]["judge"]) == (False, "result_groundedness")
    assert told["judge"]["reason"]
    [listed] = client("GET", "/v1/labels", item=name).json["data"]
    assert listed == told["label"]
    assert client("GET", "/v1/labels/next", annotator="ana", criterion="result_groundedness").problem["status"] == 404
    assert client("DELETE", f"/v1/labels/{listed['id']}").status == 204
    assert client("GET", "/v1/labels/next", annotator="ana", criterion="result_groundedness").json["item"] == name


@pytest.mark.parametrize(("sent", "pointer"), TABLES["senseless"])
def test_a_label_that_makes_no_sense_is_refused_by_its_place(
    client: PlayedClient, sent: dict[str, Any], pointer: str
) -> None:
    whole = {"item": "i", "criterion": "result_groundedness", "label": "pass", **sent}
    assert list_pointers(client("POST", "/v1/labels", whole).problem) == [pointer]


def test_agreement_and_disagreements(client: PlayedClient) -> None:
    batch = submit(client, 10)
    for n in range(10):
        label(client, f"{batch}/{n}", "pass" if n % 2 == 0 else "fail")
        label(client, f"{batch}/{n}", "pass" if n % 2 == 0 or n == 1 else "fail", "ben")
    label(client, f"{batch}/0", "unsure", "cleo")
    [found] = client("GET", "/v1/labels/agreement", criterion="result_groundedness").json["data"]
    assert (found["disputed"], found["progress"]["labelled"], found["progress"]["twice"]) == (1, 10, 10)
    assert found["agreement"]["items"] == 10
    kappa = found["agreement"]["kappa"]
    assert kappa["low"] < kappa["value"] < 1.0
    assert found["agreement"]["accuracy"]["value"] == 0.9
    [one] = client("GET", "/v1/labels/disagreements").json["data"]
    assert (one["item"], [said["label"] for said in one["labels"]]) == (f"{batch}/1", ["fail", "pass"])
    label(client, f"{batch}/1", "pass", "dora", source="adjudication")
    assert client("GET", "/v1/labels/disagreements").json["data"] == []
    with_judge = client("GET", "/v1/labels/disagreements", between="judge").json["data"]
    assert [one["item"] for one in with_judge] == [f"{batch}/1"]
    [after] = client("GET", "/v1/labels/agreement", criterion="result_groundedness").json["data"]
    assert after["agreement"] == found["agreement"]


# Sets in and out.


def test_an_import_says_what_is_new(client: PlayedClient) -> None:
    """Labels first, predictions later; then the same again, and another answer to what has one."""
    rows = [item(n) for n in range(3)]
    of = {"criterion": "result_groundedness", "raw": 0.5}
    said = [{"id": row["id"], **of, "model": f"m{n % 2}"} for n, row in enumerate(rows)]
    other = [{**one, "raw": 1.0} for one in said]
    sent = [(rows, (3, 3, 0)), ([*rows, *said], (0, 0, 3)), ([*rows, *said], (0, 0, 0)), ([*rows, *other], (0, 0, 0))]
    for lines, new in sent:
        got = client("POST", "/v1/labels/import", jsonl(*lines), LINES).json
        assert (got["items"], got["labels"], got["predictions"]) == (3, 3, len(lines) - 3)
        assert tuple(got["new"].values()) == new
    row, answer = item(9), {**of, "id": item(9)["id"], "judge": "another"}
    assert client("POST", "/v1/labels/import", jsonl(row, answer), LINES).status == 200
    [judged] = client("GET", "/v1/judges").json["data"]
    assert judged["models"] == ["m0", "m1"]
    assert (judged["items"], judged["unanswered"]) == (3, 1)  # what another judge said is not its answer
    assert (judged["passes"]["items"], judged["fails"]["items"]) == (0, 3)  # .5 is below every judge's threshold of .75


@pytest.mark.parametrize(
    ("lines", "status"),
    [(b"nonsense", 422), (b"", 422), (jsonl({"id": "a", "criterion": "c", "group": "g", "labels": []}), 422)],
)
def test_an_import_that_is_wrong_leaves_nothing(client: PlayedClient, lines: bytes, status: int) -> None:
    assert client("POST", "/v1/labels/import", lines, LINES).problem["status"] == status
    assert client("GET", "/v1/labels").json["data"] == []
    assert client("POST", "/v1/labels/import", b"{}", JSON).problem["status"] == 415


@pytest.fixture(scope="module")
def shared(ask: Ask, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlayedClient]:
    database = open_new_store(tmp_path_factory.mktemp("labels"))
    yield PlayedClient(ask, database, settings=SMALL)
    database.close()


NAMES = st.text("abé\"'<>& /", min_size=1, max_size=6)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
ROWS = st.dictionaries(
    st.tuples(NAMES, st.sampled_from(["result_groundedness", "said"])),
    st.tuples(
        st.dictionaries(NAMES, st.tuples(st.booleans(), TEXTS), min_size=1, max_size=4),
        st.one_of(st.none(), st.floats(0, 1)),
    ),
    min_size=1,
    max_size=6,
)


@given(rows=ROWS)
def test_to_import_what_was_exported_changes_nothing(shared: PlayedClient, rows: dict[tuple[str, str], Any]) -> None:
    """The law: export, then import elsewhere, then export again gives the same bytes."""
    keys = Keys(shared.database)
    sent = jsonl(*_lines(rows))
    exports: list[bytes] = []
    for place in "ab":
        _, shared.key = keys.create(name="k", tenant=f"{place}{token_hex(8)}", scopes=("label",))
        taken = shared("POST", "/v1/labels/import", sent, LINES)
        assert taken.status == 200, taken.body
        exports.append(shared("GET", "/v1/labels/export").body)
        sent = exports[-1]
    assert exports[0] == exports[1]
    assert len(exports[0].splitlines()) == len(_lines(rows))


def _lines(rows: dict[tuple[str, str], Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for (name, criterion), (labels, raw) in rows.items():
        said = [{"annotator": one, "label": ok, "note": note} for one, (ok, note) in labels.items()]
        found.append({"id": name, "criterion": criterion, "group": name, "payload": {"n": 1}, "labels": said})
        if raw is not None:
            found.append({"id": name, "criterion": criterion, "raw": raw, "model": "m"})
    return found


# Who may.


def test_anothers_item_is_neither_labelled_nor_offered(client: PlayedClient) -> None:
    keys = Keys(client.database)
    _, client.key = keys.create(name="t", tenant="t", scopes=("score",))
    name = score(client)
    _, client.key = keys.create(name="o", tenant="other", scopes=("label",))
    sent = {"item": name, "criterion": "result_groundedness", "label": "pass"}
    assert client("POST", "/v1/labels", sent).status == 404
    assert client("GET", "/v1/labels/next").status == 404


def test_a_key_labels_and_takes_back_as_itself_alone(client: PlayedClient) -> None:
    keys = Keys(client.database)
    (_, admin), (ana, ana_key), (ben, ben_key) = (
        keys.create(name=name, tenant="t", scopes=scopes)
        for name, scopes in (("root", ("admin",)), ("ana", ("label",)), ("ben", ("label",)))
    )
    client.key = admin
    name = score(client)
    client.key = ana_key
    sent = {"item": name, "criterion": "result_groundedness", "label": "pass"}
    made = client("POST", "/v1/labels", sent).json["label"]
    assert made["annotator"] == ana.id
    client.key = ben_key
    for source in ("direct", "import"):
        refused = client("POST", "/v1/labels", {**sent, "annotator": ana.id, "source": source})
        assert refused.problem["status"] == 403
    assert client("DELETE", f"/v1/labels/{made['id']}").problem["status"] == 403
    row = {"id": name, "criterion": "result_groundedness", "group": "g", "payload": {}}
    lines = jsonl({**row, "labels": [{"annotator": ana.id, "label": False}]})
    assert client("POST", "/v1/labels/import", lines, LINES).problem["status"] == 403
    assert client("POST", "/v1/labels", {**sent, "annotator": ben.id}).status == 200
    assert client("GET", "/v1/labels", annotator=ana.id).json["data"] == [made]
    client.key = admin
    assert label(client, name, "fail", ana.id)["label"]["label"] == "fail"
    assert client("POST", "/v1/labels/import", lines, LINES).status == 200


def test_what_was_decided_is_the_label_of_the_item_everywhere(client: PlayedClient) -> None:
    keys = Keys(client.database)
    _, client.key = keys.create(name="k", tenant="t", scopes=("admin",))
    batch = submit(client, 2)
    for annotator in "abcd":
        label(client, f"{batch}/0", "pass", annotator)
    label(client, f"{batch}/0", "fail", "a", source="adjudication")
    differing = client("GET", "/v1/labels/disagreements", between="judge").json["data"]
    assert [one["item"] for one in differing] == [f"{batch}/0"]
    exported = client("GET", "/v1/labels/export").body
    [item] = read_judged_set(exported.decode().split("\n")).labels.items
    assert (item.passes, len(item.opinions), item.counts[True]) == (False, 4, 4)
    [told] = client("GET", "/v1/labels/agreement", criterion="result_groundedness").json["data"]
    assert told["agreement"]["accuracy"]["value"] == 1.0
    assert client("POST", "/v1/labels/import", exported, LINES).status == 200
    assert client("GET", "/v1/labels/export").body == exported
    _, client.key = keys.create(name="k", tenant="elsewhere", scopes=("label",))
    assert client("POST", "/v1/labels/import", exported, LINES).status == 200
    assert client("GET", "/v1/labels/export").body == exported


def test_a_cursor_goes_on_from_what_was_settled_since(client: PlayedClient) -> None:
    batch = submit(client, 3)
    for n in range(3):
        label(client, f"{batch}/{n}")
        label(client, f"{batch}/{n}", "fail", "ben")
    first = client("GET", "/v1/labels/disagreements", limit=2).json
    label(client, f"{batch}/1", "fail", "cleo", source="adjudication")
    rest = client("GET", "/v1/labels/disagreements", after=first["next"]).json
    assert [one["item"] for one in rest["data"]] == [f"{batch}/2"]
    assert client("GET", "/v1/labels/disagreements", after="result_groundedness/nothing").problem["status"] == 422


@pytest.mark.parametrize(("sent", "pointer"), TABLES["steps"])
def test_a_step_that_is_not_there_is_refused(client: PlayedClient, sent: dict[str, Any], pointer: str) -> None:
    whole = {"item": score(client), "criterion": "result_groundedness", **sent}
    assert list_pointers(client("POST", "/v1/labels", whole).problem) == [pointer]
    assert client("GET", "/v1/labels").json["data"] == []


def test_labelled_steps_go_out_as_items_and_come_back_as_steps(client: PlayedClient) -> None:
    batch = submit(client, 1)
    label(client, f"{batch}/0", "pass")
    label(client, f"{batch}/0", "fail", step=0, note="no")
    label(client, f"{batch}/0", "unsure", "ben", step=0)
    exported = client("GET", "/v1/labels/export").body
    step, whole = sorted(read_judged_set(exported.decode().split("\n")).labels.items, key=lambda one: not one.run)
    assert (step.id, step.run, step.position, step.passes) == (f"{batch}/0#0", f"{batch}/0", 0, False)
    assert (whole.id, whole.passes, step.group) == (f"{batch}/0", True, whole.group)
    assert step.trace is not None
    events = step.trace["events"]
    assert isinstance(events, list)
    assert ["call" in one for one in events if isinstance(one, dict)] == [False, True]
    assert client("POST", "/v1/calibrations", exported, LINES).json["items"] == 2
    for one in client("GET", "/v1/labels").json["data"]:
        assert client("DELETE", f"/v1/labels/{one['id']}").status == 204
    assert client("POST", "/v1/labels/import", exported, LINES).status == 200
    came = {(one["item"], one["step"], one["label"]) for one in client("GET", "/v1/labels").json["data"]}
    assert came == {(f"{batch}/0", None, "pass"), (f"{batch}/0", 0, "fail")}
    again = read_judged_set(client("GET", "/v1/labels/export").body.decode().split("\n")).labels.items
    assert {(one.id, one.passes, one.run) for one in again} == {(one.id, one.passes, one.run) for one in (step, whole)}


def test_a_step_of_a_run_that_is_not_here_stays_an_item(client: PlayedClient) -> None:
    run = {"id": "run-1#2", "run": "run-1", "position": 2, "criterion": "step_quality"}
    lines = jsonl({**run, "group": "g", "trace": trace(1, right=True), "labels": [{"annotator": "x", "label": True}]})
    assert client("POST", "/v1/labels/import", lines, LINES).status == 200
    assert [one["item"] for one in client("GET", "/v1/labels").json["data"]] == ["run-1#2"]
    [item] = read_judged_set(client("GET", "/v1/labels/export").body.decode().split("\n")).labels.items
    assert (item.id, item.run, item.position) == ("run-1#2", "run-1", 2)

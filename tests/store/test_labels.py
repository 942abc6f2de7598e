"""Labels in the database: once for each annotator and item, what comes next, and gone with what they are of."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import pytest
import sqlalchemy as sa

from service.errors import InputError, OthersLabelError, UnknownItemError
from service.labelling.agreement import measure_judge
from service.store.access.audit import Actor, Audit
from service.store.access.keys import Keys
from service.store.database import Database
from service.store.jobs.chunks import Chunks
from service.store.jobs.jobs import Batches
from service.store.jobs.leases import OutcomeRow, OutcomeRows
from service.store.jobs.submission import Chunk, JobSubmission
from service.store.kept_scores import KeptScores
from service.store.labelling.choice import LabelChooser
from service.store.labelling.drafts import LabelDraft, LabelItem, ScoreDraft, Word
from service.store.labelling.items import compute_draw
from service.store.labelling.labels import Labels
from service.store.labelling.opinions import Opinions
from service.store.tables import BATCHES, LABEL_ITEMS, LABELS, SCORES
from tests.store.played import PLAYER, ended, hold, opened, rows_of

ANA = Actor("key ana", "10.0.0.1")
REPORT = b'{"criteria":[{"id":"result_groundedness","stage":"integrate"}],"trace_id":null}'


def kept(database: Database, *items: LabelItem, tenant: str = "t") -> str:
    draft = ScoreDraft("four_step@2", "pass", 1.0, {}, b'{"trace":{"format":"openai"}}', REPORT, items)
    return KeptScores(database).keep(tenant, draft)


def judged(raw: float, *, waits: bool = False) -> LabelItem:
    return LabelItem("result_groundedness", "integrate", waits, raw, raw, 0.5, None if waits else raw >= 0.5, "[]")


def said(item: str, annotator: str = "ana", label: Word = "pass", **more: object) -> LabelDraft:
    return LabelDraft(
        **{"item": item, "criterion": "result_groundedness", "annotator": annotator, "label": label, **more}
    )


def count(database: Database, table: sa.Table) -> int:
    with database.read() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def batch_of(database: Database, *rows: Sequence[LabelItem]) -> str:
    """A batch that has ended, with what of its items may be labelled."""
    line = b'{"custom_id":"c","request":{"trace":{"format":"openai","messages":[]}}}\n'
    chunk = Chunk(0, len(rows), zlib.compress(line * len(rows)))
    made = Batches(database).submit(JobSubmission(tenant="t", fingerprint="f", hours=1, name="n"), [chunk])
    assert opened(database, made.id, 0)
    [row] = rows_of(database, made.id)
    told = f'{{"custom_id":"c","report":{REPORT.decode()}}}'
    outcomes = [OutcomeRow(n, True, told, label_items=items) for n, items in enumerate(rows)]
    assert Chunks(database, PLAYER).record([OutcomeRows(hold(row), outcomes)]) == [True]
    ended(database, made.id)
    return made.id


def test_a_later_label_takes_the_place_of_an_earlier_one(database: Database) -> None:
    name, labels = kept(database, judged(0.4)), Labels(database)
    first = labels.put("t", said(name, label="fail", note="a", failing_step=2, claim="x"))
    assert (first.failing_step, first.claim, first.step, first.source) == (2, "x", None, "direct")
    second = labels.put("t", said(name, label="pass"))
    [only] = labels.page("t", limit=10).data
    assert only == second
    assert (only.label, only.note, only.id > first.id) == ("pass", "", True)
    labels.put("t", said(name, "ben"))
    labels.put("t", said(name, step=0))
    assert [(one.annotator, one.step) for one in labels.page("t", limit=10).data] == [
        ("ana", 0),
        ("ben", None),
        ("ana", None),
    ]


def test_pages_go_on_where_the_last_one_ended(database: Database) -> None:
    names, labels = [kept(database, judged(0.4)) for _ in range(5)], Labels(database)
    made = [labels.put("t", said(name)).id for name in names]
    first = labels.page("t", limit=3)
    rest = labels.page("t", limit=3, after=first.next)
    assert [one.id for one in (*first.data, *rest.data)] == sorted(made, reverse=True)
    assert (first.has_more, rest.has_more, rest.next) == (True, False, None)
    assert [one.item for one in labels.page("t", limit=9, item=names[1]).data] == [names[1]]


def test_a_label_of_what_is_not_there_is_refused(database: Database) -> None:
    name, labels = kept(database, judged(0.4)), Labels(database)
    for item, criterion, tenant in (
        (name, "nobody", "t"),
        (name, "result_groundedness", "other"),
        ("score_" + "0" * 32, "result_groundedness", "t"),
        ("batch_" + "0" * 32 + "/0", "result_groundedness", "t"),
        ("anything", "result_groundedness", "t"),
        ("nul\0", "result_groundedness", "t"),
    ):
        with pytest.raises(UnknownItemError):
            labels.put(tenant, said(item, criterion=criterion))
    assert count(database, LABELS) == 0


def test_items_of_a_batch_are_found_and_go_with_it(database: Database) -> None:
    batch, labels = batch_of(database, [judged(0.2)], [judged(0.9)]), Labels(database)
    assert count(database, LABEL_ITEMS) == 2
    subject = labels.read_subject("t", f"{batch}/1", "result_groundedness")
    assert (subject.request, (subject.report or {})["trace_id"]) == (
        {"trace": {"format": "openai", "messages": []}},
        None,
    )
    with pytest.raises(UnknownItemError):
        labels.read_subject("t", f"{batch}/2", "result_groundedness")
    labels.put("t", said(f"{batch}/1"))
    Batches(database).delete("t", batch)
    assert (count(database, LABEL_ITEMS), count(database, LABELS)) == (0, 0)


def test_a_kept_score_goes_with_its_labels_and_that_is_noted(database: Database) -> None:
    name, scores = kept(database, judged(0.4)), KeptScores(database)
    Labels(database).put("t", said(name))
    with pytest.raises(UnknownItemError):
        scores.delete("other", name, by=ANA)
    scores.delete("t", name, by=ANA)
    assert [count(database, table) for table in (SCORES, LABEL_ITEMS, LABELS)] == [0, 0, 0]
    assert [(one.act, one.target, one.who) for one in Audit(database).page(limit=5).data] == [
        ("score.delete", name, "key ana")
    ]


def test_kept_scores_are_listed_by_tenant(database: Database) -> None:
    first, second = kept(database), kept(database)
    kept(database, tenant="other")
    scores = KeptScores(database)
    page = scores.page("t", limit=1)
    assert ([one.id for one in page.data], page.next) == ([second], second)
    assert [one.id for one in scores.page("t", limit=1, after=page.next).data] == [first]
    assert scores.read("t", first) == (b'{"trace":{"format":"openai"}}', REPORT)
    with pytest.raises(UnknownItemError):
        scores.read("other", first)


def test_what_is_old_and_was_not_labelled_lately_is_forgotten(database: Database) -> None:
    old, fresh, labels = kept(database, judged(0.4)), kept(database, judged(0.4)), Labels(database)
    labels.put("t", said(fresh))
    labels.import_items("t", {("i", "result_groundedness"): (judged(0.1), "{}")}, [said("i", source="import")], by=ANA)
    with database.begin() as connection:
        connection.execute(SCORES.update().values(created_at=database.now() - 86_400 * 40))
        connection.execute(LABEL_ITEMS.update().values(created_at=database.now() - 86_400 * 40))
    labels.forget_old(days=30)
    assert {one.id for one in KeptScores(database).page("t", limit=9).data} == {fresh}
    assert {one.item for one in labels.page("t", limit=9).data} == {fresh, "i"}
    with database.begin() as connection:
        connection.execute(LABELS.update().values(made_at=database.now() - 86_400 * 40))
    labels.forget_old(days=30)
    assert (count(database, LABEL_ITEMS), count(database, LABELS), old != fresh) == (0, 0, True)


def walk(database: Database, annotator: str, *, double: float = 0.0, most: int = 99) -> list[tuple[str, str]]:
    """What one annotator labels until nothing is left, and why."""
    chooser, labels, found = LabelChooser(database, double=double), Labels(database), list[tuple[str, str]]()
    while len(found) < most and (choice := chooser.choose("t", "result_groundedness", annotator)) is not None:
        labels.put("t", said(choice.item, annotator, source=choice.source))
        found.append((choice.item, choice.source))
    return found


def test_what_waits_for_a_human_comes_first_and_the_most_doubtful_of_it(database: Database) -> None:
    sure = [kept(database, judged(raw)) for raw in (0.0, 1.0, 0.0, 1.0)]
    far, near = kept(database, judged(0.1, waits=True)), kept(database, judged(0.45, waits=True))
    found = walk(database, "ana")
    assert found[:2] == [(near, "human"), (far, "human")]
    assert {item for item, _ in found[2:]} == set(sure)
    assert {source for _, source in found[2:]} == {"sample"}
    assert walk(database, "ana") == walk(database, "ben") == []


def test_the_rest_comes_as_it_was_drawn(database: Database) -> None:
    """Whatever the judge said: the order is that of pseudo-random places, which nobody chooses."""
    items = [kept(database, judged(n % 2)) for n in range(6)]
    found = [item for item, _ in walk(database, "ana", most=3)]
    assert found == sorted(items, key=lambda item: compute_draw(item, "result_groundedness"))[:3]
    progress = LabelChooser(database).measure("t", "result_groundedness", "ana")
    assert (progress.items, progress.labelled, progress.mine, progress.waiting) == (6, 3, 3, 0)


def test_a_share_of_items_gets_a_second_opinion_and_none_a_third(database: Database) -> None:
    names = {kept(database, judged(0.5)) for _ in range(40)}
    assert {item for item, _ in walk(database, "ana", double=0.5)} == names
    second = walk(database, "ben", double=0.5)
    assert 5 <= len(second) <= 35
    assert {source for _, source in second} == {"second"}
    assert walk(database, "cleo", double=0.5) == []
    assert LabelChooser(database).measure("t", "result_groundedness", "ben").twice == len(second)


def test_whoever_settles_keeps_their_own_opinion(database: Database) -> None:
    name, labels = kept(database, judged(0.9)), Labels(database)
    for annotator, word in (("ana", "pass"), ("ben", "fail"), ("cleo", "pass")):
        labels.put("t", said(name, annotator, word))
    labels.put("t", said(name, "ana", "fail", source="adjudication"))
    [case] = Opinions(database).list_cases("t", "result_groundedness")
    assert [(one.annotator, one.label) for one in case.opinions] == [("ana", "pass"), ("ben", "fail"), ("cleo", "pass")]
    assert (case.passes, case.is_disputed, case.differs_from_judge) == (False, False, True)
    labels.put("t", said(name, "ben", "pass", source="adjudication"))
    assert Opinions(database).list_cases("t", "result_groundedness")[0].passes is True
    assert LabelChooser(database).measure("t", "result_groundedness", "ana").twice == 1


@pytest.mark.parametrize("again", ["pass", "fail"])
def test_who_has_seen_the_judges_word_is_blind_no_more(database: Database, again: Word) -> None:
    name, labels = kept(database, judged(0.9)), Labels(database)
    first = labels.put("t", said(name, blind=True))
    assert first.blind
    assert labels.put("t", said(name, blind=True)) == first
    labels.delete("t", first.id, by=ANA)
    assert not labels.put("t", said(name, label=again, blind=True)).blind
    assert labels.put("t", said(name, "ben", blind=True)).blind
    other = kept(database, judged(0.9))
    labels.put("t", said(other, blind=True))
    assert not labels.put("t", said(other, label="fail", blind=True)).blind


def test_what_came_of_kept_scores_is_counted_by_tenant(database: Database) -> None:
    scores = KeptScores(database)
    for tenant, tool in (("t", "mine"), ("u", "yours"), ("u", "yours")):
        broken = {"stage": "select", "finding": "wrong_tool", "tool": tool, "stages": "select", "cluster": ""}
        scores.keep(tenant, ScoreDraft("r@1", "fail", 0.0, {"team": tool}, b"{}", REPORT, broken=broken))
    for tenant, tool, count_ in (("t", "mine", 1), ("u", "yours", 2), ("v", "", 0)):
        counts = {("fail", "select", ""): count_} if count_ else {}
        assert scores.count_outcomes(tenant) == counts
        assert scores.count_tags(tenant) == ({("team", tool): counts} if counts else {})
        assert [(one.tool, one.count) for one in scores.group_failures(tenant)] == [(tool, count_)] * bool(counts)


def test_a_document_never_takes_the_place_of_what_was_scored_here(database: Database) -> None:
    batch, labels = batch_of(database, [judged(0.2)], []), Labels(database)
    score = kept(database, judged(0.2))
    for name in (f"{batch}/0", f"{batch}/1", score):
        items = {(name, "result_groundedness"): (judged(0.9), '{"trace":"forged"}')}
        labels.import_items("t", items, [said(name, source="import")], by=ANA)
        assert labels.read_subject("t", name, "result_groundedness").document is None
        with pytest.raises(InputError) as refused:
            labels.import_items("t", {(name, "more"): (judged(0.9), "{}")}, [], by=ANA)
        assert refused.value.problems[0].path == "/criterion"
    words = [labels.read_judge("t", name, "result_groundedness") for name in (f"{batch}/0", f"{batch}/1", score)]
    assert [one and one.raw for one in words] == [0.2, None, 0.2]
    Batches(database).delete("t", batch)
    assert {one.item for one in labels.page("t", limit=9).data} == {score}


def test_a_document_is_that_of_its_own_criterion(database: Database) -> None:
    labels = Labels(database)
    items = {("i", name): (LabelItem(name, ""), f'{{"criterion":"{name}"}}') for name in ("a", "b")}
    labels.import_items("t", items, [], by=ANA)
    assert [labels.read_subject("t", "i", name).document for name in "ab"] == [{"criterion": "a"}, {"criterion": "b"}]


def test_what_was_left_open_differs_from_nothing(database: Database) -> None:
    name, labels = kept(database, judged(0.9, waits=True)), Labels(database)
    labels.put("t", said(name, label="fail"))
    [case] = Opinions(database).list_cases("t", "result_groundedness")
    assert not case.differs_from_judge
    found = measure_judge([case], "j", "result_groundedness")
    assert found is not None
    assert (found.items, found.undecided, found.equal, found.share, found.trust) == (0, 1, 0, None, "unknown")


def test_what_replaces_deletes_and_forgets_labels_is_noted_with_its_count(database: Database) -> None:
    labels, batch = Labels(database), batch_of(database, [judged(0.2)])
    item = f"{batch}/0"
    labels.put("t", said(item, label="pass"), by=ANA)
    last = labels.put("t", said(item, label="fail"), by=ANA)
    with pytest.raises(OthersLabelError):
        labels.delete("t", last.id, by=ANA, annotator="ben")
    with pytest.raises(OthersLabelError):
        labels.import_items("t", {}, [said(item, source="import")], by=ANA, annotator="ben")
    assert labels.page("t", limit=9).data == (last,)
    Batches(database).delete("t", batch, by=ANA)
    labels.import_items("t", {("i", "result_groundedness"): (judged(0.1), "{}")}, [said("i", source="import")], by=ANA)
    forgotten = batch_of(database, [judged(0.2)])
    labels.put("t", said(f"{forgotten}/0"), by=ANA)
    with database.begin() as connection:
        old = database.now() - 86_400 * 40
        connection.execute(LABEL_ITEMS.update().values(created_at=old))
        connection.execute(LABELS.update().values(made_at=old))
        connection.execute(BATCHES.update().values(ended_at=old))
    Batches(database).forget_old(days=30)
    labels.forget_old(days=30)
    noted = [(one.act, one.who, one.detail) for one in Audit(database).page(limit=9).data][::-1]
    assert [act for act, _, _ in noted] == [
        "label.replace",
        "batch.delete",
        "label.import",
        "label.forget",
        "label.forget",
    ]
    assert noted[0][2]["label"] == "pass"
    assert [told.get("labels") for _, _, told in noted[1:]] == [1, 1, 1, 1]
    assert {who for _, who, _ in noted[3:]} == {"service"}
    assert count(database, LABELS) == 0


def test_labels_of_nobody_go_to_the_tenant_of_the_first_key_with_their_items(database: Database) -> None:
    name, labels = kept(database, judged(0.4), tenant=""), Labels(database)
    made = labels.put("", said(name))
    Keys(database).create(name="k", tenant="t", scopes=("label",))
    assert labels.page("t", limit=9).data == (made,)
    assert labels.page("", limit=9).data == ()
    assert labels.read_subject("t", name, "result_groundedness").request is not None
    assert not labels.put("t", said(name, label="fail", blind=True)).blind
    assert [count(database, table) for table in (SCORES, LABEL_ITEMS, LABELS)] == [1, 1, 1]


def test_a_label_is_drawn_by_chance_only_where_it_was_its_turn(database: Database) -> None:
    labels, chooser = Labels(database), LabelChooser(database)
    names = {kept(database, judged(0.9)) for _ in range(9)}
    turn = chooser.choose("t", "result_groundedness", "ana")
    assert turn is not None
    chosen = max(names - {turn.item})
    assert labels.put("t", said(chosen, source="sample")).source == "direct"
    assert labels.put("t", said(turn.item, source="sample")).source == "sample"
    assert labels.put("t", said(turn.item, source="sample")).source == "sample"
    assert labels.put("t", said(chosen, annotator="ben", source="second")).source == "second"
    alone = max(names - {turn.item, chosen})
    assert [labels.put("t", said(alone, source=one)).source for one in ("second", "human")] == ["direct", "direct"]

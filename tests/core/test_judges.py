"""Judges: their files, what they are asked and when, how votes become outcomes, and what a report says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from math import fsum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from service import Plan, conclude, plan, report_json
from service.core.judging.grades import CANNOT_TELL, Worth
from service.core.judging.judged_outcomes import JudgedScore, OpenJudgement, UnsureJudgement, judge_ask, leave_open
from service.core.judging.judges import Ask, Judge
from service.core.judging.notes import JudgeReply, Vote
from service.core.judging.prompts import Usage
from service.core.judging.questions import ASSEMBLY, build_question
from service.core.judging.replies import JudgedClaim, Judgement
from service.core.outcome import Errored, Outcome, Scored, Skipped, is_open
from service.core.trace import is_hollow
from service.reading.packaged_files import find_resource
from service.reporting.summaries import read_report
from tests.fits import make_fit
from tests.tables import DATA, named, read_yaml

TABLES = read_yaml(DATA / "judges" / "asked.yaml")

FILES = sorted((find_resource("rubrics") / "judges").glob("*.yaml"))
SCALE = {"yes": 1.0, "so": 0.5, "no": 0.0}
AT = "/steps/0/call"
DOWN = Errored("timeout", "no answer in time")
UNASKED = Skipped("not_asked", "the cache has no answer, and no model is asked")


def judge(**fields: Any) -> Judge:
    return Judge.model_validate({"id": "j", "level": "step", "question": "?", "scale": SCALE, **fields})


def reply(label: str = "yes", value: float | None = None, **fields: Any) -> JudgeReply:
    claims = fields.pop("claims", ())
    more = {name: fields.pop(name) for name in ("graded", "best", "left_out") if name in fields}
    said = Judgement(label, SCALE[label] if value is None else value, f"it is {label}", (f"q {label}",), claims, **more)
    usage = Usage(fields.pop("tokens_in", 10), fields.pop("tokens_out", 2), fields.pop("cost_usd", 0.25))
    given: dict[str, Any] = {"requested": "x/m", "model": "m", "cache": "miss", "latency_ms": 5.0, **fields}
    return JudgeReply(said, usage=usage, **given)


def unsure(**fields: Any) -> JudgeReply:
    """A reply that cannot tell."""
    said = Judgement(CANNOT_TELL, 0.0, "too little", (), best=Worth(1.0, 1.0))
    return replace(reply(**fields), judgement=said)


def torn(low: float, high: float, label: str = "no", **fields: Any) -> JudgeReply:
    """A reply that leaves claims open: graded so at worst and at best, and of the label's value at worst."""
    best = Worth(SCALE[label] if label == "no" else 1.0, high)
    return reply(label, graded=low, best=best, **fields)


def outcome(*votes: Vote, fits: Any = (), **fields: Any) -> Outcome:
    return judge_ask(Ask("it", judge(**fields), 0), votes, AT, fits)


# The files


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_packaged_judge_is_complete(file: Any) -> None:
    made = Judge.model_validate(read_yaml(file))
    assert made.id == file.stem
    assert max(label.value for label in made.scale.values()) == 1.0
    assert min(label.value for label in made.scale.values()) == 0.0
    assert all(label.means for label in made.scale.values()), "each label has its anchor"
    assert any(label.value < made.threshold for label in made.scale.values())
    assert len(made.menu) <= 4, "a small model can keep as many apart"
    assert {label for example in made.examples for label in example.labels} == set(made.menu), "each has its example"
    assert len(made.examples) <= 4
    assert all(set(example.shown) <= set(made.part_names) for example in made.examples)
    named = {part for part in made.part_names if f"`{part}`" in made.question}
    assert named, "the question names what it is about as it is shown"


@pytest.mark.parametrize(("fields", "why"), read_yaml(DATA / "judges" / "refused.yaml"))
def test_a_judge_that_cannot_be_used_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        judge(**fields)


# Votes


TOLD: list[tuple[str, dict[str, Any], list[Vote], Any]] = [
    ("one", {}, [reply("so")], (0.5, "so", False)),
    ("the mean", {}, [reply("yes"), reply("yes"), reply("no")], (2 / 3, "yes", False)),
    ("the mean at the threshold", {"threshold": 0.7}, [reply("yes", 0.9)] * 3 + [reply("yes", 0.1)],
     (0.7, "yes", True)),
    ("noise below it", {}, [reply("yes", 0.75 - 1e-12)], (0.75, "yes", True)),
    ("less than noise", {}, [reply("yes", 0.7499)], (0.7499, "yes", False)),
    ("most", {"combine": "majority"}, [reply("yes"), reply("yes"), reply("no")], (1.0, "yes", True)),
    ("of two the lower", {"combine": "majority"}, [reply("yes"), reply("no")], (0.0, "no", False)),
    ("of three the lowest", {"combine": "majority"}, [reply("yes"), reply("so"), reply("no")], (0.0, "no", False)),
    ("of two the lower is told", {}, [reply("yes"), reply("no")], (0.5, "no", False)),
    ("most, expected values", {"combine": "majority"}, [reply("yes", 0.9), reply("yes", 0.8), reply("no", 0.1)],
     (0.85, "yes", True)),
    ("two of three read, and the third could turn it", {}, [reply("yes"), DOWN, reply("yes")], DOWN),
    ("four of five read, and the fifth could not", {}, [*[reply("yes")] * 4, DOWN], (1.0, "yes", True)),
    ("one that nothing could mend", {}, [reply("no"), reply("no"), DOWN], (0.0, "no", False)),
    ("a majority that stands", {"combine": "majority"}, [reply("yes"), reply("yes"), DOWN], (1.0, "yes", True)),
    ("a majority that another label could turn", {"combine": "majority"}, [reply("yes"), reply("no"), DOWN], DOWN),
    ("half read", {}, [reply("yes"), DOWN], DOWN),
    ("one of three read", {}, [DOWN, reply("yes"), DOWN], DOWN),
    ("none read", {}, [DOWN, Errored("refused", "no")], DOWN),
    ("a fault goes before what was not asked", {}, [UNASKED, DOWN], DOWN),
    ("none asked", {}, [UNASKED, UNASKED], UNASKED),
    ("none at all", {}, [], Skipped("not_asked", "no judge has answered this")),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "votes", "want"), named(TOLD))
def test_votes_become_an_outcome(fields: dict[str, Any], votes: list[Vote], want: Any) -> None:
    found = outcome(*votes, **fields)
    if not isinstance(found, JudgedScore):
        assert found == want
        return
    assert (found.value, found.judge.label, found.passed) == (pytest.approx(want[0]), *want[1:])
    assert found.raw == pytest.approx(
        fsum(vote.judgement.value for vote in votes if isinstance(vote, JudgeReply))
        / (sum(isinstance(vote, JudgeReply) for vote in votes))
    )
    assert found.judge.reason == f"it is {want[1]}"


LABELS = st.sampled_from(sorted(SCALE))
VOTES = st.lists(LABELS.map(reply) | st.just(DOWN) | st.just(UNASKED), min_size=1, max_size=7)


@given(VOTES, st.data(), st.sampled_from(["mean", "majority"]))
def test_the_order_of_votes_means_nothing(votes: list[Vote], data: st.DataObject, how: str) -> None:
    found, other = (outcome(*some, combine=how) for some in (votes, data.draw(st.permutations(votes))))
    read = [vote for vote in votes if isinstance(vote, JudgeReply)]
    assert isinstance(found, Scored) == isinstance(other, Scored)
    if len(votes) - len(read) <= 3:
        full = [[*read, *map(reply, rest)] for rest in product(sorted(SCALE), repeat=len(votes) - len(read))]
        decisions = {bool(made.passed) for some in full if isinstance(made := outcome(*some, combine=how), Scored)}
        assert isinstance(found, Scored) == (bool(read) and len(decisions) == 1)
        assert not isinstance(found, Scored) or decisions == {found.passed}
    if isinstance(found, JudgedScore) and isinstance(other, JudgedScore):
        assert (found.value, found.judge.label) == (other.value, other.judge.label)
        assert found.judge.spread == other.judge.spread
        assert min(one.judgement.value for one in read) <= found.value <= max(one.judgement.value for one in read)


# What votes leave open

OPEN: list[tuple[str, dict[str, Any], list[Vote], Any]] = [
    ("one that cannot tell", {}, [unsure()], "human"),
    ("two of three that cannot", {}, [unsure(), reply("yes"), unsure()], "human"),
    ("one of two, which could turn it", {}, [unsure(), reply("yes")], "human"),
    ("one of five, which could not", {}, [unsure(), *[reply("yes")] * 4], True),
    ("one of three, and the others fail", {}, [unsure(), *[reply("no")] * 2], False),
    ("a majority stands", {"combine": "majority"}, [unsure(), *[reply("yes")] * 2], True),
    ("a majority that leaves a part of one out", {"combine": "majority", "claims": "worst"},
     [reply("yes"), reply("yes"), torn(0.3, 1.0, "yes", value=0.0)], True),
    ("a majority that it could turn", {"combine": "majority"}, [unsure(), reply("yes"), reply("no")], "human"),
    ("a fault goes before what it cannot tell", {}, [unsure(), DOWN], DOWN),
    ("a bad claim stands whatever the others are", {"claims": "worst"}, [torn(0.4, 0.5)], False),
    ("claims that could turn it", {"claims": "worst"}, [torn(0.5, 1.0, "so")], "human"),
    ("sentences that no claim quotes", {"claims": "worst"}, [torn(0.5, 1.0, "so", left_out=("a b",))],
     "invalid_judgement"),
    ("a missing vote of those that would be asked", {"most_votes": 9}, [*[reply("yes")] * 4, DOWN], DOWN),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "votes", "want"), named(OPEN))
def test_what_votes_leave_open(fields: dict[str, Any], votes: list[Vote], want: Any) -> None:
    found = outcome(*votes, **fields)
    if isinstance(want, bool):
        assert isinstance(found, JudgedScore)
        assert found.passed is want
    else:
        assert found == want or getattr(found, "cause", None) == want
    if want == "human":
        assert isinstance(found, UnsureJudgement)
        assert found.judge.tokens_in == 10 * len(votes)
        assert found.reason.startswith("j cannot tell")
        assert found.findings[-1].code == CANNOT_TELL


FIT = make_fit(judge_digest=judge().digest, model="m", criterion="it", assembly=ASSEMBLY, threshold=0.3)
JURY_FIT = make_fit(**{**FIT.model_dump(), "model": "a+b", "weights": {"a": 0.8, "b": 0.2}, "threshold": 0.5})
GRADED: list[tuple[str, Any, list[Vote], Any]] = [
    ("the graded value decides by the fit", FIT, [reply("no", graded=0.4)], (0.4, True)),
    ("and may fail", FIT, [reply("no", graded=0.2)], (0.2, False)),
    ("what is open and decides nothing", FIT, [torn(0.4, 0.6)], (0.5, True)),
    ("what is open and decides", FIT, [torn(0.2, 0.4)], None),
    ("an end in the band", FIT.model_copy(update={"review_band": (0.55, 0.65)}), [torn(0.4, 0.6)], None),
    ("both ends outside the domain", FIT.model_copy(update={"domain": (0.45, 0.55)}), [torn(0.4, 0.6)], None),
    ("a jury by its weights", JURY_FIT, [reply(graded=0.9, model="a"), reply(graded=0.1, model="b")], (0.74, True)),
    ("in another order", JURY_FIT, [reply(graded=0.1, model="b"), reply(graded=0.9, model="a")], (0.74, True)),
    ("a member that cannot turn it", JURY_FIT, [reply(graded=0.9, model="a"), unsure(model="b")], (0.82, True)),
    ("a member that can", JURY_FIT, [unsure(model="a"), reply(graded=0.9, model="b")], None),
    ("a member that is missing", JURY_FIT, [reply(graded=0.9, model="a"), DOWN], None),
]


@pytest.mark.parametrize(
    ("fit", "votes", "status"),
    [
        (FIT, [reply(), reply(requested="x/n")], "mismatched"),
        (FIT, [reply(), reply(requested="y/m")], "calibrated"),
    ],
)
def test_no_fit_is_of_votes_that_another_model_gave_in_part(fit: Any, votes: list[Vote], status: str) -> None:
    found = outcome(*votes, fits=[fit])
    assert isinstance(found, JudgedScore)
    assert found.calibration.status == status


@pytest.mark.parametrize(("fit", "votes", "want"), named(GRADED))
def test_a_fit_takes_the_graded_value(fit: Any, votes: list[Vote], want: Any) -> None:
    found = outcome(*votes, fits=[fit])
    if want is None:
        assert not isinstance(found, Scored)
        assert is_open(found)
        return
    assert isinstance(found, JudgedScore)
    assert (found.calibration.status, found.passed) == ("calibrated", want[1])
    assert found.raw == found.value == pytest.approx(want[0])


@pytest.mark.parametrize(("edges", "veto", "raw", "open_"), named(TABLES["promised"]))
def test_a_promise_is_of_one_side(edges: dict[str, float], veto: float | None, raw: float, open_: bool) -> None:
    fit = make_fit(**{**FIT.model_dump(), "guarantee": {"share": 0.9, **edges}})
    found = judge_ask(Ask("it", judge(), veto=veto), [reply(graded=raw)], AT, [fit])
    assert isinstance(found, JudgedScore)
    assert (found.calibration.status, found.calibration.needs_human) == ("calibrated", open_)


OTHER_FIT = FIT.model_copy(update={"model": "other"})
BAND_FIT = FIT.model_copy(update={"review_band": (0.35, 0.5)})
SURE_FIT = make_fit(**{**FIT.model_dump(), "guarantee": {"share": 0.9, "passes_from": 0.2}})
LEFT_OPEN: list[tuple[str, Any, dict[str, Any], tuple[str, str, float | None] | None]] = [
    ("calibrated", FIT, {}, None),
    ("calibrated, in the band", BAND_FIT, {}, ("human", "needs_human", 0.4)),
    ("no fit", None, {}, None),
    ("no fit, and one is required", None, {"required": True}, ("uncalibrated", "not_calibrated", None)),
    ("a fit of another model", OTHER_FIT, {}, ("uncalibrated", "not_calibrated", None)),
    ("nothing is promised without a fit", None, {"guarantee": 0.9}, ("uncalibrated", "not_guaranteed", None)),
    ("nor by this fit", FIT, {"guarantee": 0.9}, ("uncalibrated", "not_guaranteed", None)),
    ("enough is promised", SURE_FIT, {"guarantee": 0.9}, None),
    ("too little is promised", SURE_FIT, {"guarantee": 0.95}, ("uncalibrated", "not_guaranteed", None)),
]


@pytest.mark.parametrize(("fit", "asked", "want"), named(LEFT_OPEN))
def test_which_judgements_do_not_count(fit: Any, asked: dict[str, Any], want: Any) -> None:
    score = outcome(reply(graded=0.4), fits=[fit] if fit else [])
    assert isinstance(score, JudgedScore)
    found = leave_open(score, AT, **{"required": False, **asked})
    if want is None:
        assert found is score
        return
    assert isinstance(found, OpenJudgement)
    assert (found.cause, found.findings[-1].code, found.estimate) == want
    assert (found.raw, found.judge, found.reason) == (score.raw, score.judge, found.findings[-1].message)


ENDS = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted)


@given(st.lists(ENDS, min_size=1, max_size=4), st.data())
def test_what_is_open_may_come_to_anything_and_decides_as_it_did(ends: list[list[float]], data: st.DataObject) -> None:
    """With what is open taken anywhere between its ends, a decision that was made stays; with a fit and without."""
    votes = [torn(low, high, data.draw(LABELS), model=f"m{n}") for n, (low, high) in enumerate(ends)]
    weights = {f"m{n}": 1 / len(ends) for n in range(len(ends))}
    fit = make_fit(**{**FIT.model_dump(), "model": "+".join(weights), "weights": weights, "review_band": (0.2, 0.4)})
    for fits in ([], [fit]):
        found = outcome(*votes, fits=fits)
        full: list[Vote] = []
        for vote, (low, high) in zip(votes, ends, strict=True):
            share = data.draw(st.floats(0, 1))
            value = vote.judgement.value + share * (vote.judgement.high.value - vote.judgement.value)
            said = Judgement(vote.judgement.label, value, "", graded=min(high, low + share * (high - low)))
            full.append(replace(vote, judgement=said))
        known = outcome(*full, fits=fits)
        assert isinstance(known, JudgedScore)
        if isinstance(found, JudgedScore) and not found.calibration.needs_human:
            assert (known.passed, known.calibration.needs_human) == (found.passed, False)


REMARKS: list[tuple[list[Vote], list[tuple[str, str]]]] = [
    ([reply()], []),
    ([reply(requested="openai/gpt-5-mini", model="gpt-5-mini-2026-08-07")], []),
    ([reply(model="other")], [("other_model", "x/m was asked, other answered")]),
    ([reply(model="other")] * 3, [("other_model", "x/m was asked, other answered")]),
    ([reply(model="")], [("other_model", "x/m was asked, a model that gives no name answered")]),
    ([reply(cut=("results", "call")), reply(cut=("call",))],
     [(name, f"{part} was too long for the judge and shown in part") for name,
     part in (("shown_in_part", "call"), ("shown_in_part", "results"))]),
]  # fmt: skip


@pytest.mark.parametrize(("votes", "want"), REMARKS)
def test_what_a_reader_should_know(votes: list[Vote], want: list[tuple[str, str]]) -> None:
    found = outcome(*votes)
    assert isinstance(found, JudgedScore)
    assert found.passed
    assert [(one.code, one.message, one.path) for one in found.findings] == [(*one, AT) for one in want]


# Hollow answers


HOLLOW, FULL = read_yaml(DATA / "judges" / "hollow.yaml").values()


RESULT = {"call": {"name": "f"}, "result": {"total": 5400}}


def planned(*events: dict[str, Any], rubric: Any = "four_step", **more: Any) -> Plan:
    return plan({"rubric": rubric, "trace": {"format": "callgrade", "events": [{"user": "Pay"}, *events]}, **more})


def settled(made: Plan, criterion: str) -> list[Outcome | str]:
    """The cells of a criterion: outcomes, and the keys of questions."""
    planned = next(one for one in made.criteria if one.criterion.id == criterion)
    outcomes = [found for _, found in planned.outcomes]
    return [found.key if isinstance(found, Ask) else found for found in outcomes]  # type: ignore[misc]


@pytest.mark.parametrize("text", [*HOLLOW, "?" * 100_000], ids=lambda text: ascii(text)[:40])
def test_a_hollow_answer_never_reaches_a_judge(text: str) -> None:
    assert is_hollow(text)
    made = planned(RESULT, {"assistant": text})
    (found,) = settled(made, "result_groundedness")
    assert isinstance(found, Scored)
    assert (found.value, found.passed) == (0.0, False)
    assert [(one.code, one.path) for one in found.findings] == [("hollow_answer", "/messages/2/text")]
    assert made.asks, "other questions are still asked"
    for ask in made.asks:
        shown = json.dumps([part.value for part in build_question(ask, made.trace).parts])
        assert '"assistant"' not in shown
    report = conclude(made, {ask.key: DOWN for ask in made.asks})
    assert "result_groundedness" in report.failing


# What is asked, and when


def rubric(*criteria: dict[str, Any], **judges: dict[str, Any]) -> dict[str, Any]:
    stage = {"stage": "arguments"}
    made = [{"id": name, "level": "step", "question": "?", "scale": SCALE, **fields} for name, fields in judges.items()]
    return {"id": "case", "criteria": [{**stage, **one} for one in criteria], "judges": made}


def asking(name: str, judge_id: str, **check: Any) -> dict[str, Any]:
    return {"id": name, "check": {"kind": "judge", "judge": judge_id, **check}}


TWO_TURNS = (
    RESULT,
    RESULT,
    {"assistant": "Paid."},
    {"user": "Again"},
    {"call": {"name": "f", "arguments": "{"}},
    {"assistant": "Hm."},
)


@pytest.mark.parametrize(("level", "fields", "want"), TABLES["levels"])
def test_what_a_judge_is_asked(level: str, fields: dict[str, Any], want: list[Any]) -> None:
    made = planned(*TWO_TURNS, rubric=rubric(asking("it", "j"), j={"level": level, **fields}))
    found = settled(made, "it")
    assert [one.cause if isinstance(one, Skipped) else one for one in found] == want
    assert [ask.key for ask in made.asks] == [one for one in want if "/" in one]


@pytest.mark.parametrize(("level", "fields", "why"), TABLES["bare"])
def test_where_there_is_nothing_nothing_is_asked(level: str, fields: dict[str, Any], why: str) -> None:
    made = planned(rubric=rubric(asking("it", "j"), j={"level": level, **fields}))
    (found,) = settled(made, "it")
    assert isinstance(found, Skipped)
    assert found.reason == why
    assert made.asks == ()


def by_code(kind: str, **more: Any) -> dict[str, Any]:
    return {"id": "code", "check": {"kind": kind}, **more}


TOOLS = [{"name": "f", "parameters": {"type": "object", "required": ["a"]}}]


def test_a_failed_gate_leaves_the_question_unasked_and_the_report_says_so() -> None:
    calls = [{"call": {"name": "f"}}, {"call": {"name": "f", "arguments": {"a": 1}}}]
    trace = {"format": "callgrade", "events": [{"user": "Go"}, *calls], "tools": TOOLS}
    scored = rubric({**by_code("schema"), "blocking": True}, asking("it", "j"), j={})
    made = plan({"rubric": scored, "trace": trace})
    assert [ask.key for ask in made.asks] == ["it/1"]
    report = conclude(made, {"it/1": (reply("yes"),)})
    assert [(one.criterion, one.judge, one.step, one.why) for one in report.not_asked] == [
        ("it", "j", 0, "blocked by code")
    ]
    assert report.steps[0].outcomes["it"] == Skipped("blocked", "blocked by code")
    assert report.verdict == "fail"
    off = conclude(made, mode="off")
    assert [(one.step, one.why) for one in off.not_asked] == [(0, "judges are off"), (1, "judges are off")]
    assert off.steps[0].outcomes["it"] == Skipped("out_of_scope", "judges are off")


# The report


@pytest.mark.parametrize(
    ("vote", "kind"),
    [(reply("so", claims=(JudgedClaim("a", "no", "b", None),)), JudgedScore), (unsure(), UnsureJudgement)],
)
def test_a_judged_report_can_be_read_back(vote: Vote, kind: type[Outcome]) -> None:
    made = planned(RESULT, rubric=rubric(asking("it", "j"), j={}))
    report = conclude(made, {"it/0": (vote,)})
    back = read_report(json.loads(report_json(report)))
    assert back == report
    assert type(back.steps[0].outcomes["it"]) is kind
    assert [(one.cause, one.decides) for one in back.open] == [("human", True)] * (kind is UnsureJudgement)

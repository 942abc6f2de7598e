"""What the page of a trace is made of; hostile texts stay texts on it, whatever part of it they are."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from service.engine import score
from service.web.run_file import render_run_file
from service.web.trace.build import ScoredTrace, build_trace_view
from service.web.trace.comparison import ROW_WORDS
from service.web.trace.grounding import ValueView
from service.web.trace.marks import TextPiece, escape_invisible
from service.web.trace.places import MAX_SHOWN, resolve_place
from service.web.trace.run import build_run_view
from service.web.trace.stored import read_sent
from service.web.trace.view import QuietSteps, StepView, TextView, TraceView
from tests.tables import DATA, read_yaml
from tests.web.hostile import build_hostile, list_hostile

TABLES = read_yaml(DATA / "web" / "trace_view.yaml")

CASES = {
    case["request"]["trace"]["id"]: case["request"]
    for case in json.loads((Path(__file__).parents[2] / "service" / "demo" / "cases.json").read_text("utf-8"))
}


def build(request: dict[str, Any], **more: Any) -> TraceView:
    return build_trace_view(ScoredTrace(score(request), *read_sent(request)), **more)


def steps_of(view: TraceView) -> list[StepView]:
    found: list[StepView] = []
    for turn in view.turns:
        for event in turn.events:
            found += event.steps if isinstance(event, QuietSteps) else [event] if isinstance(event, StepView) else []
    return found


def texts_of(view: TraceView) -> list[TextView]:
    return [event for turn in view.turns for event in turn.events if isinstance(event, TextView)]


def marked(pieces: tuple[TextPiece, ...]) -> list[tuple[str, str]]:
    """The stretches with a mark, and the numbers by which they are linked."""
    return [(piece.text, piece.mark.links) for piece in pieces if piece.mark is not None]


SCHEMA = {"id": "schema", "stage": "arguments", "check": {"kind": "schema"}}
GROUNDING = {"id": "grounding", "stage": "integrate", "check": {"kind": "grounding"}}
ONLY_GROUNDING = {"id": "grounding", "version": 1, "criteria": [GROUNDING]}


def build_calls(results: list[Any], answer: str = "Done.", **more: Any) -> dict[str, Any]:
    """A trace with a call for each result."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go on."}]
    for n, result in enumerate(results):
        function = {"name": "look", "arguments": json.dumps({"n": n})}
        messages.append(
            {"role": "assistant", "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}]}
        )
        content = result if isinstance(result, str) else json.dumps(result)
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": content})
    trace = {"format": "openai", "messages": [*messages, {"role": "assistant", "content": answer}]}
    return {"trace": trace, "judges": "off", **more}


@pytest.mark.parametrize(("name", "verdict", "words", "to", "opened"), TABLES["broken"])
def test_what_broke_is_told_first_and_shown_opened(
    name: str, verdict: str, words: list[str], to: str, opened: list[int]
) -> None:
    view = build(CASES[name])
    assert view.verdict == verdict
    assert [one.words for one in view.problems if one.words in words] == words
    assert view.first_failing == to
    assert [step.number for step in steps_of(view) if step.open] == opened


def test_a_value_and_the_field_that_speaks_against_it_are_linked() -> None:
    view = build(CASES["flipped-amount"])
    said, step = texts_of(view)[-1], steps_of(view)[0]
    assert step.result is not None
    mark = next(piece.mark for piece in step.result.pieces if piece.mark and piece.text == "540000")
    wrong = next(one for one in said.values if one.text == "$54.00")
    assert (wrong.sign, wrong.words, wrong.nearest) == ("wrong", "wrong", False)
    assert [(place.words, place.value, place.to) for place in wrong.places] == [
        ("amount_cents of the result of step 1", "540000", mark.also)
    ]
    assert ("$54.00", mark.links) in marked(said.text.pieces)


ORDERS = {"total_cents": 1200, "orders": [{"kept": 31}, {"kept": 40}], "tracking": "ZX81-7741-QQ"}


def build_grounded(answer: str) -> dict[str, ValueView]:
    view = build(build_calls([ORDERS], answer, rubric=ONLY_GROUNDING))
    return {one.text: one for one in texts_of(view)[-1].values}


@pytest.mark.parametrize(("answer", "value", "words", "how"), TABLES["origins"])
def test_a_value_says_where_it_comes_from(answer: str, value: str, words: str, how: str) -> None:
    one = build_grounded(answer)[value]
    assert (one.words, one.how) == (words, how)
    assert one.nearest == (one.words in ("found nowhere", "general knowledge"))


@pytest.mark.parametrize(("content", "answer"), TABLES["fields"])
def test_a_field_in_a_text_is_found_where_it_stands(content: str, answer: str) -> None:
    view = build(build_calls([content], answer, rubric=ONLY_GROUNDING))
    result, value = steps_of(view)[0].result, next(one for one in texts_of(view)[-1].values if one.text == "$25")
    assert result is not None
    at, mark = next(
        (n, piece.mark)
        for n, piece in enumerate(result.pieces)
        if piece.mark and result.pieces[n - 1].text.endswith(('"price": ', "price: "))
    )
    assert result.pieces[at].text == "25"
    assert mark.also in [place.to for place in value.places]


@pytest.mark.parametrize(("path", "exists"), TABLES["pointers"])
def test_a_pointer_leads_to_what_is_there_and_no_further(path: str, exists: bool | None) -> None:
    events = [{"user": "Go"}, {"call": {"name": "f", "arguments": {"a": 1}}, "result": [1, 2]}, {"assistant": "Done"}]
    request = {"trace": {"format": "callgrade", "events": events}}
    trace = read_sent(request).trace
    assert trace is not None
    place = resolve_place(path, trace)
    assert (place and place.exists) == exists


def test_expected_and_actual_arguments_stand_side_by_side() -> None:
    step = steps_of(build(CASES["broken-arguments"]))[0]
    assert step.expected is not None
    rows = {row.name: row for row in step.expected.rows}
    assert {name: row.words for name, row in rows.items()} == {
        "order_id": "missing",
        "amount_cents": "differs",
        "order": "not expected",
    }
    actual = rows["amount_cents"].actual
    assert actual is not None
    assert "".join([piece.text for piece in actual.pieces]) == '"54.00"'  # 54.00 would be a number
    assert rows["order_id"].actual is None
    assert rows["order"].expected is None


def build_one_call(called: dict[str, Any], expected: dict[str, Any], **more: Any) -> TraceView:
    """A call of `pay` whose expectation is given, on offer beside `look`."""
    events = [{"user": "Pay."}, {"call": {"name": "pay", "arguments": called}, "result": {"ok": True}}]
    trace = {"format": "callgrade", "events": events, "tools": [{"name": "pay"}, {"name": "look"}]}
    return build({"trace": trace, "expected": {"calls": [expected], **more}})


WORDS = {"kind": "natural_language", "criterion": "polite"}


@pytest.mark.parametrize(("called", "expected", "more", "words"), TABLES["arguments"])
def test_an_argument_is_as_expected_only_where_a_check_compared_it(
    called: dict[str, Any], expected: dict[str, Any], more: dict[str, Any], words: dict[str, str]
) -> None:
    (step,) = steps_of(build_one_call(called, {"tool": "pay", **expected}, **more))
    assert step.expected is not None
    assert {row.name: row.words for row in step.expected.rows} == words


def test_the_state_is_held_against_the_one_before_and_the_one_expected() -> None:
    state = {"initial": {"a": 1, "b": 2, "c": 3}, "final": {"a": 9, "b": 2, "c": 4, "d": 5}}
    changes = [{"path": "/a", "value": 9}, {"path": "/b", "value": 8}, {"path": "/c", "value": 5}]
    trace = {"format": "callgrade", "events": [{"user": "Go."}], "state": state}
    view = build({"trace": trace, "expected": {"state": {"changes": changes}}, "judges": "off"})
    assert {row.path: row.status for row in view.state} == {
        "/a": "made",
        "/b": "missing",
        "/c": "wrong",
        "/d": "unexpected",
    }
    assert view.state_note == ""


def test_of_a_long_trace_the_beginning_and_what_broke_is_shown() -> None:
    size = MAX_SHOWN + 200
    rubric = {"id": "by_code", "version": 1, "criteria": [SCHEMA, GROUNDING]}
    answer = "The cents are $3.00 and $1,190.00."
    request = build_calls([{"cents": 100 * n} for n in range(size)], answer, rubric=rubric)
    bounds = {"properties": {"n": {"maximum": size - 6}}}
    request["trace"]["tools"] = [{"type": "function", "function": {"name": "look", "parameters": bounds}}]
    request["trace"]["messages"][1:1] = [{"role": "assistant", "content": f"Now {n}."} for n in range(size)]
    scored = ScoredTrace(score(request), *read_sent(request))
    view = build_trace_view(scored)
    assert [step.number for step in steps_of(view)] == [*range(1, MAX_SHOWN + 1), *range(size - 4, size + 1)]
    assert view.first_failing == f"step-{size - 5}"
    assert (view.steps_left_out, view.texts_left_out) == (195, 201)
    assert len(texts_of(view)) == MAX_SHOWN + 1
    text = render_run_file(build_run_view("A run", [scored], frozenset([0])))
    links, ids = set(re.findall(r'href="#([^"]+)"', text)), re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert {one for one in links if one not in ids} == set()
    assert "1\u202f005 are shown" in text
    assert "195 are left out here" in text
    assert "201 texts are left out here" in text


def list_open(view: TraceView) -> Iterator[tuple[str, bool]]:
    yield from [(one.criterion, one.decides) for one in view.open]


def test_what_is_open_says_whether_it_decides() -> None:
    view = build(CASES["undecided"])
    assert (view.verdict_words, view.score_words) == ("undecided (8% checked)", "score between 0.08 and 1.00")
    assert ("result_groundedness", True) in list_open(view)
    assert {one.reason for one in view.open} == {"needs a judge"}


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

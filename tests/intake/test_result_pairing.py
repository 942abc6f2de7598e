"""Which result answers which call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.trace import ToolCall, ToolResult
from service.intake.build import Transcript, pair

# A script: "call:ID" in the message under way, "/" begins another message, "ret:ID" a result ("" for no id).
# Wanted: for each call, the number of the result it got.
SCRIPTS = [
    ("by id", "/ call:a call:b ret:a ret:b", [0, 1]),
    ("by id, answered out of order", "/ call:a call:b ret:b ret:a", [1, 0]),
    ("by order where there are no ids", "/ call: call: ret: ret:", [0, 1]),
    ("by order where the ids are unknown", "/ call:a call:b ret:x ret:y", [0, 1]),
    ("an id that is known takes precedence over order", "/ call:a call:b ret:x ret:a", [1, 0]),
    ("results missing", "/ call:a call:b call:c ret:b", [None, 0, None]),
    ("no results", "/ call:a / call:b", [None, None]),
    ("one id twice in a message: in order", "/ call:a call:a ret:a ret:a", [0, 1]),
    ("one id in every message", "/ call:a ret:a / call:a ret:a", [0, 1]),
    ("one id in every message, the first unanswered", "/ call:a / call:a ret:a", [None, 0]),
    ("an earlier message answered late", "/ call:a / call:b ret:b ret:a", [1, 0]),
    ("one id, the later message first, then the earlier", "/ call:a / call:a ret:a ret:a", [1, 0]),
    ("a second result for one call is nobody's", "/ call:a call:b ret:a ret:a", [0, None]),
    ("order goes by message", "/ call: / call: ret:", [None, 0]),
    ("order never reaches back to an earlier message", "/ call: / call: ret: ret:", [None, 0]),
    ("a result before any call is nobody's", "ret:a / call:a", [None]),
    ("a result does not answer a later call", "/ call:a ret:b / call:b", [0, None]),
    ("more results than calls", "/ call: ret: ret:", [0]),
]


def play(script: str) -> list[int | None]:
    transcript = Transcript()
    returned = 0
    for word in script.split():
        if word == "/":
            transcript.say("assistant", "")
        elif word.startswith("call:"):
            transcript.call(ToolCall(word[5:] or None, "f", {}))
        else:
            transcript.result(word[4:], ToolResult(returned))
            returned += 1
    steps = transcript.trace({"format": "x"}, trace_id=None, tools=None).steps
    return [None if step.result is None else step.result.content for step in steps]  # type: ignore[misc]


@pytest.mark.parametrize(("script", "wanted"), [pytest.param(*row[1:], id=row[0]) for row in SCRIPTS])
def test_pairing(script: str, wanted: list[int | None]) -> None:
    assert play(script) == wanted


ids = st.sampled_from(["", "a", "b", "c"])
words = st.one_of(st.just("/"), ids.map("call:{}".format), ids.map("ret:{}".format))


@given(st.lists(words, max_size=24))
def test_no_result_is_given_twice_or_to_a_later_call(script: list[str]) -> None:
    answers = play(" ".join(script))
    given = [answer for answer in answers if answer is not None]
    assert len(given) == len(set(given))
    calls = [place for place, word in enumerate(script) if word.startswith("call:")]
    results = [place for place, word in enumerate(script) if word.startswith("ret:")]
    assert len(answers) == len(calls)
    assert all(calls[index] < results[answer] for index, answer in enumerate(answers) if answer is not None)


@given(st.permutations(["a", "b", "c", "d"]))
def test_the_order_of_answers_does_not_matter_where_ids_tell(order: list[str]) -> None:
    answers = play("/ call:a call:b call:c call:d " + " ".join(f"ret:{name}" for name in order))
    assert [order[answer] for answer in answers if answer is not None] == ["a", "b", "c", "d"]


def test_a_result_that_came_without_its_content_still_takes_its_place() -> None:
    calls = [(ToolCall(None, "f", {}), 1, 0), (ToolCall(None, "g", {}), 1, 0)]
    assert pair(calls, [(None, None, 2), (None, ToolResult("g's"), 2)]).answers == {0: None, 1: ToolResult("g's")}

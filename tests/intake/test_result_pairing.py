"""Which result answers which call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from service.core.trace import ToolCall, ToolResult, Trace
from service.intake.build import Transcript

# A script: "call:ID@TOOL" in the message under way, "/" begins another message, "ret:ID@TOOL" a result; either may be left out.
# Wanted: for each call, the number of the result it got; then the kinds of what is unread.
SCRIPTS = [
    ("by id", "/ call:a call:b ret:a ret:b", [0, 1], []),
    ("by id, answered out of order", "/ call:a call:b ret:b ret:a", [1, 0], []),
    ("by order where there are no ids", "/ call: call: ret: ret:", [0, 1], []),
    ("by order where the results have no ids", "/ call:a call:b ret: ret:", [0, 1], []),
    ("by order where the calls have no ids", "/ call: call:b ret:x ret:b", [0, 1], []),
    ("never by order where both have ids", "/ call:a call:b ret:x ret:a", [1, None], ["call"]),
    ("an id that is known takes precedence over a tool", "/ call:a@f call:b@g ret:b@f ret:a@g", [1, 0], []),
    ("by tool where there are no ids", "/ call:@f call:@g ret:@g ret:@f", [1, 0], []),
    ("by tool where the ids are unknown", "/ call:a@f call:b@g ret:x@g ret:y@f", [1, 0], []),
    ("one tool several times: in order", "/ call:@f call:@g call:@f ret:@f ret:@f", [0, None, 1], []),
    ("by tool before any goes by order", "/ call:@f call:@g ret: ret:@f", [1, 0], []),
    ("never by order to another tool", "/ call:@f ret:@g", [None], ["call"]),
    ("never by tool to an earlier message", "/ call:@f / call:@g ret:@f", [None, None], ["call"]),
    ("results missing", "/ call:a call:b call:c ret:b", [None, 0, None], []),
    ("no results", "/ call:a / call:b", [None, None], []),
    ("one id twice in a message: in order", "/ call:a call:a ret:a ret:a", [0, 1], []),
    ("one id in every message", "/ call:a ret:a / call:a ret:a", [0, 1], []),
    ("one id in every message, the first unanswered", "/ call:a / call:a ret:a", [None, 0], []),
    ("an earlier message answered late", "/ call:a / call:b ret:b ret:a", [1, 0], []),
    ("one id, the later message first, then the earlier", "/ call:a / call:a ret:a ret:a", [1, 0], []),
    ("a second result for one call is unread", "/ call:a call:b ret:a ret:a", [0, None], ["result"]),
    ("one that says the same again is not", "/ call:a ret:a same:a", [0], []),
    ("nothing overwrites what stands beside a call", "/ call:a beside: ret:a", ["beside"], ["result"]),
    ("nor is it another call's by order", "/ call:a beside: call: ret:", ["beside", 0], []),
    ("order goes by message", "/ call: / call: ret:", [None, 0], []),
    ("order never reaches back to an earlier message", "/ call: / call: ret: ret:", [None, 0], ["call"]),
    ("a result before any call is nobody's", "ret:a / call:a", [None], ["call"]),
    ("a result does not answer a later call", "/ call:a ret:b / call:b", [None, None], ["call"]),
    ("more results than calls", "/ call: ret: ret:", [0], ["call"]),
]


def tell(script: str) -> Trace:
    transcript = Transcript()
    returned = 0
    for word in script.split():
        verb, _, rest = word.partition(":")
        call_id, _, tool = rest.partition("@")
        if verb == "/":
            transcript.say("assistant", "")
        elif verb == "call":
            transcript.call(ToolCall(call_id or None, tool or "f", {}))
        elif verb == "beside":
            transcript.answer(ToolResult(verb))
        else:
            returned -= verb == "same"
            transcript.add_result(call_id, ToolResult(returned), path=f"/{returned}", tool=tool)
            returned += 1
    return transcript.build_trace({"format": "x"}, tools=None)


def play(script: str) -> list[JsonValue]:
    return [None if step.result is None else step.result.content for step in tell(script).steps]


@pytest.mark.parametrize(("script", "wanted", "unread"), [pytest.param(*row[1:], id=row[0]) for row in SCRIPTS])
def test_pairing(script: str, wanted: list[JsonValue], unread: list[str]) -> None:
    assert play(script) == wanted
    assert [part.kind for part in tell(script).unread] == unread


ids = st.sampled_from(["", "a", "b", "c", "a@g", "@f", "@g"])
words = st.one_of(st.just("/"), ids.map("call:{}".format), ids.map("ret:{}".format))


@given(st.lists(words, max_size=24))
def test_no_result_is_given_twice_or_to_a_later_call(script: list[str]) -> None:
    answers = play(" ".join(script))
    given = [answer for answer in answers if answer is not None]
    assert len(given) == len(set(given))
    calls = [place for place, word in enumerate(script) if word.startswith("call:")]
    results = [place for place, word in enumerate(script) if word.startswith("ret:")]
    assert len(answers) == len(calls)
    unread = [part for part in tell(" ".join(script)).unread if "an empty reply" not in part.reason]
    assert len(results) == len(given) + len(unread)
    assert all(calls[index] < results[answer] for index, answer in enumerate(answers) if answer is not None)


@given(st.permutations(["a", "b", "c", "d"]))
def test_the_order_of_answers_does_not_matter_where_ids_tell(order: list[str]) -> None:
    answers = play("/ call:a call:b call:c call:d " + " ".join(f"ret:{name}" for name in order))
    assert [order[answer] for answer in answers if answer is not None] == ["a", "b", "c", "d"]


def test_a_result_that_came_without_its_content_still_takes_its_place() -> None:
    transcript = Transcript()
    for tool in "fg":
        transcript.call(ToolCall(None, tool, {}), parallel=tool == "g")
    transcript.add_result(None, None)
    transcript.add_result(None, ToolResult("g's"))
    steps = transcript.build_trace({"format": "x"}, tools=None).steps
    assert [step.result for step in steps] == [None, ToolResult("g's")]

"""Several votes and second requests: who is asked again, in which order of labels, and what is kept."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from service import Plan, plan
from service.asking.budget.reservations import Spending
from service.asking.judging import Judges, Judging
from service.core.judging.prompts import Completion, Prompt, Usage
from service.core.outcome import Skipped
from tests.replies import MemoryCache

ANSWER = "It cost $54. It came on Monday."
FIRST, SECOND = "It cost $54.", "It came on Monday."


SCALE = {"yes": 1, "so": 0.5, "no": 0}
NOBODY_ELSE = Judges("m")


EVENTS = [{"user": "?"}, {"call": {"name": "look"}, "result": {"usd": 54}}, {"assistant": ANSWER}]


class Scripted:
    """A provider that says one after the other what it is told: a label, or the sentences that it claims something of."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt, spending: Spending, tenant: str = "") -> Completion:  # noqa: ARG002
        self.prompts.append(prompt)
        said = self.script.pop(0)
        token = re.search(r'"token": "([^"]*)"', prompt.turns[1].text.splitlines()[-1])
        assert token is not None
        claims = [{"quote": one, "reason": "", "place": 0, "label": "yes"} for one in said]
        whole = {"reason": "so", "quotes": ["54"], "label": said}
        body = {"claims": claims} if isinstance(said, list) else whole
        return Completion(json.dumps({"token": token[1], **body}), prompt.model, Usage(1, 1, 0.5))


def plan_question(answer: str = ANSWER, **judge: Any) -> Plan:
    """A plan with one question to a judge about the answer; `judge`: its fields."""
    fields = {"id": "j", "level": "turn", "shows": ["results", "said"], "question": "?", "scale": SCALE}
    check = {"kind": "judge", "judge": "j"}
    criteria = [{"id": "it", "stage": "integrate", "check": check}]
    rubric = {"id": "r", "judges": [fields | judge], "criteria": criteria}
    return plan({"rubric": rubric, "trace": {"format": "callgrade", "events": [*EVENTS[:2], {"assistant": answer}]}})


def ask(
    script: Sequence[Any],
    *,
    cache: MemoryCache | None = None,
    mode: Any = "live",
    who: Judges = NOBODY_ELSE,
    answer: str = ANSWER,
    **judge: Any,
) -> tuple[list[Any], Scripted]:
    """The votes on one question to a judge, and the provider that was asked."""
    made, calls = plan_question(answer, **judge), Scripted(*script)
    judging = Judging(calls, cache or MemoryCache(), who)
    [votes] = asyncio.run(judging.answer(made.asks, made.trace, mode=mode, spending=Spending(None))).values()
    assert not calls.script
    return list(votes), calls


ROUNDS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("two that agree", {"votes": 2, "most_votes": 5}, ["yes", "yes"]),
    ("two that both fail", {"votes": 2, "most_votes": 5}, ["so", "no"]),
    ("two that do not agree", {"votes": 2, "most_votes": 5}, ["yes", "no", "yes", "yes", "no"]),
    ("one that cannot tell", {"votes": 1, "most_votes": 3}, ["cannot_tell", "yes", "yes"]),
    ("one that can", {"votes": 1, "most_votes": 3}, ["no"]),
    ("a jury", {"models": ["m", "n"], "most_votes": 2}, ["yes", "no", "yes", "no"]),
    ("without more", {"votes": 2}, ["yes", "no"]),
]


@pytest.mark.parametrize(("judge", "script"), [case[1:] for case in ROUNDS], ids=[case[0] for case in ROUNDS])
def test_more_are_asked_where_the_first_do_not_agree(judge: dict[str, Any], script: list[str]) -> None:
    votes, calls = ask(script, **judge)
    assert [vote.judgement.label for vote in votes] == script
    assert len({(prompt.model, prompt.turns) for prompt in calls.prompts}) == len(script), "each in an order of its own"


def test_what_is_cached_of_both_rounds_is_found_again() -> None:
    cache, judge = MemoryCache(), {"votes": 2, "most_votes": 3}
    ask(["yes", "no", "yes"], cache=cache, **judge)
    votes, _ = ask([], cache=cache, mode="cached", **judge)
    assert [vote.cache for vote in votes] == ["hit"] * 3
    cache.texts.popitem()
    votes, _ = ask([], cache=cache, mode="cached", **judge)
    assert isinstance(votes[2], Skipped)


DOCTORED: list[dict[str, Any]] = [
    {"label": "no"},
    {"value": 0.5},
    {"label": "cannot_tell"},
    {"best": [1, 1]},
    {"claims": [["54", "no", "", None]]},
]


@pytest.mark.parametrize("change", DOCTORED, ids=str)
def test_a_row_whose_value_is_not_that_of_its_label_is_a_miss(change: dict[str, Any]) -> None:
    """Cassettes are text in version control, and edited."""
    cache = MemoryCache()
    ask(["yes"], cache=cache)
    [(key, text)] = cache.texts.items()
    row = json.loads(text)
    cache.texts[key] = json.dumps({**row, "judgement": {**row["judgement"], **change}})
    [vote], _ = ask([], cache=cache, mode="cached")
    assert isinstance(vote, Skipped)
    cache.texts[key] = text
    assert ask([], cache=cache, mode="cached")[0][0].judgement.label == "yes"


@pytest.mark.parametrize("second", [[SECOND], "yes"])
def test_what_is_left_out_twice_is_open(second: Any) -> None:
    [vote], _ = ask([[FIRST], second], claims="worst")
    said = vote.judgement
    assert said.left_out == ((FIRST,) if second == [SECOND] else (SECOND,))
    assert (said.low, said.high) == ((0.0, 0.5), (1.0, 1.0))

"""The rubric that asks everything."""

from __future__ import annotations

from service import Registry, plan

TRACE = {
    "format": "callgrade",
    "tools": [{"name": "look", "parameters": {"type": "object"}}],
    "events": [
        {"user": "How is it?"},
        {"call": {"name": "look", "arguments": {"at": "it"}}, "result": '{"how": "fine"}'},
        {"assistant": "It is rather well."},
    ],
}

OTHERS = {"natural_language", "next_action", "step_quality"}
"""Of matchers in words, and of rubrics that look at single steps and actions."""


def test_every_judge_of_the_contract_is_asked():
    asked = [ask.judge.id for ask in plan({"trace": TRACE, "rubric": "contract_full"}).asks]
    assert sorted(asked) == sorted(Registry().judges.keys() - OTHERS)


def test_it_is_a_rubric_of_its_own():
    found, base = Registry().find("contract_full@1"), Registry().find("four_step")
    assert {one.id for one in base.criteria} < {one.id for one in found.criteria}
    assert (found.thresholds, found.title) == (base.thresholds, "The contract, all questions")

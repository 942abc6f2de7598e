"""The wording of what is sent to a model, one file for each packaged judge.

Where it changes on purpose: python -m tests.core.test_prompts, and `ASSEMBLY` or the version of the judge is raised.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service import plan
from service.core.judging.questions import build_question
from service.registry import Registry

GOLDEN = Path(__file__).parents[1] / "data" / "judges" / "prompts"
JUDGES = sorted(Registry().judges)
TRACE: dict[str, Any] = {
    "format": "callgrade",
    "tools": [{"name": "get_order", "description": "An order by number."}],
    "events": [{"user": "What was order 9104?"}, {"call": {"name": "get_order", "arguments": {"id": 9104}},
     "result": {"amount_cents": 5400}}, {"assistant": "It was $54.00."}],
}  # fmt: skip


def render(name: str) -> str:
    """The prompt of a judge, system and user, with stand-ins for what nobody can know beforehand."""
    criterion: dict[str, Any] = {"id": "it", "stage": "integrate", "check": {"kind": "judge", "judge": name}}
    made = plan({"rubric": {"id": "r", "criteria": [criterion]}, "trace": TRACE})
    prompt = build_question(made.asks[0]._replace(words="the price", value="$54.00"), made.trace).prompt(
        "m", "BOUNDARY", "TOKEN"
    )
    return "".join([f"[{turn.role}]\n{turn.text}\n" for turn in prompt.turns])


@pytest.mark.parametrize("name", JUDGES)
def test_a_prompt_is_worded_as_it_was(name: str) -> None:
    assert render(name) == (GOLDEN / f"{name}.txt").read_text("utf-8")


def test_no_prompt_is_left_behind() -> None:
    assert sorted(file.stem for file in GOLDEN.iterdir()) == JUDGES


if __name__ == "__main__":
    for judge in JUDGES:
        (GOLDEN / f"{judge}.txt").write_text(render(judge), "utf-8")

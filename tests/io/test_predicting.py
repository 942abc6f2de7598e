"""Labelled items are judged: what the judge says becomes a prediction, what it does not say is told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from service.calibrating.importers import imported
from service.calibrating.labels import LabelledItem
from service.core.prompts import Completion, Prompt
from service.core.questions import ASSEMBLY
from service.errors import InputError, JudgeError
from service.io.bootstrap import standing_in
from service.io.engine import Engine
from service.io.judging import Judges, Judging, Uncached
from service.io.predicting import predictions_of
from service.io.shelf import Shelf
from service.io.spending import Spending
from tests.io.conftest import Run

SHELF = Shelf()
STARTER = Path(__file__).parents[2] / "calibration" / "labels" / "starter.jsonl"


class Down:
    """A judge that cannot be reached."""

    async def complete(self, prompt: Prompt, spending: Spending) -> Completion:  # noqa: ARG002
        raise JudgeError("provider_error", "nobody there")


def item(**more: Any) -> LabelledItem:
    written = {
        "id": "a",
        "criterion": "grounded",
        "group": "g",
        "labels": [{"annotator": "ana", "label": True}],
        **more,
    }
    return LabelledItem.model_validate(written)


def predicted(run: Run, items: Sequence[LabelledItem], judging: Judging | None = None) -> Any:
    engine = Engine(SHELF, judging=judging or standing_in())
    return run(predictions_of(engine, items, SHELF.find("four_step")))


def test_every_case_of_the_starter_set_is_judged(run: Run):
    items = imported(STARTER.read_text("utf-8").splitlines()).labels.items
    made, missing = predicted(run, items)
    assert (len(made), missing) == (60, [])
    assert {one.criterion for one in made} == {"warranted", "tool_choice", "plausible", "grounded"}
    for one in made:
        judge = SHELF.judges[one.judge]
        assert (one.judge_digest, one.model, one.assembly) == (judge.digest, "callgrade/stand-in", ASSEMBLY)
        assert one.raw in {label.value for label in judge.scale.values()}


PAIRS = [("It is $54.00.", 1.0), ("It is $77.00.", 0.0)]


@pytest.mark.parametrize(("answer", "raw"), PAIRS)
def test_a_payload_with_an_answer_is_a_trace_too(run: Run, answer: str, raw: float):
    [one], missing = predicted(run, [item(payload={"amount_cents": 5400}, answer=answer)])
    assert (one.id, one.raw, missing) == ("a", raw, [])


def test_the_judge_is_asked_even_where_code_would_decide(run: Run):
    """A scale flip never reaches a judge in four_step; to be fitted, the judge must say what it makes of it."""
    [one], _ = predicted(run, [item(payload={"amount_cents": 540000}, answer="It is $54.00.")])
    assert one.raw == 0.0


def test_what_no_judge_answered_is_told_and_left_out(run: Run):
    judging = Judging(Down(), Uncached(), Judges("openai/down"))
    made, missing = predicted(run, [item(payload={"a": 1}, answer="It is 1.")], judging)
    assert (made, missing) == ([], ["a: nobody there"])


def test_a_criterion_without_a_judge_is_refused(run: Run):
    with pytest.raises(InputError, match="no judge of four_step decides 'schema'; known: "):
        predicted(run, [item(criterion="schema", payload={}, answer="x")])

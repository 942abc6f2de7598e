"""Judges in Python: when they are asked, what their answers are worth, how they are cached, and what becomes of their faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import callgrade
from service.asking.judging import Judges
from service.asking.own_judges import OWN_JUDGES
from service.core.conclusion.judge_answers import NO_JUDGE
from service.core.judging.notes import JudgeReply
from service.core.outcome import Errored, Skipped
from tests.asking.test_votes import ask as ask_judge
from tests.replies import MemoryCache

CLAIMS = ["It cost $54.", "It came on Monday."]


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    before = dict(OWN_JUDGES)
    yield
    OWN_JUDGES.clear()
    OWN_JUDGES.update(before)


def register(answer: Any, criterion: str = "it", **options: Any) -> None:
    @callgrade.judge(criterion, name="mine", **options)
    def mine(claims: list[str], evidence: list[callgrade.Evidence]) -> Any:
        return answer(claims, evidence) if callable(answer) else answer


def ask(*, script: tuple[Any, ...] = (), who: str = "", claims: str = "worst", **more: Any) -> list[Any]:
    """The votes on one question."""
    return ask_judge(script, who=Judges(who), claims=claims, **more)[0]


WORTH: list[tuple[str, Any, dict[str, Any], str, float, float]] = [
    ("a label for all claims", "yes", {}, "yes", 1.0, 1.0),
    ("one for each", ["yes", "no"], {}, "no", 0.0, 0.5),
    ("probabilities", [("yes", 0.75), ("yes", 1.0)], {"claims": "mean"}, "yes", 1.0, 0.875),
    ("a probable fault", [("no", 0.75), "yes"], {"claims": "mean"}, "no", 0.5, 0.625),
    ("the whole", "no", {"claims": "none"}, "no", 0.0, 0.0),
    ("the whole, probably", ("yes", 0.9), {"claims": "none"}, "yes", 1.0, 0.9),
    ("an answer", callgrade.Answer("yes", 0.5, "it is there", "/steps/0/result/content/usd"), {}, "yes", 1.0, 2 / 3),
]


@pytest.mark.parametrize(
    ("answer", "judge", "label", "value", "graded"), [one[1:] for one in WORTH], ids=[one[0] for one in WORTH]
)
def test_answers_count_as_a_model_s_do(
    answer: Any, judge: dict[str, Any], label: str, value: float, graded: float
) -> None:
    register(answer)
    [vote] = ask(**judge)
    assert isinstance(vote, JudgeReply), vote
    assert (vote.judgement.label, vote.judgement.low.value) == (label, value)
    assert vote.judgement.low.graded == pytest.approx(graded)
    assert (vote.model, vote.usage.cost_usd, vote.judgement.best) == ("python/mine", 0.0, None)


def test_it_is_given_the_sentences_and_what_the_tools_returned() -> None:
    seen: list[tuple[object, ...]] = []

    def answer(*given: object) -> str:
        seen.append(given)
        return "yes"

    register(answer)
    ask()
    assert seen == [(CLAIMS, [callgrade.Evidence("/steps/0/result/content", {"usd": 54})])]


def crash(*_: object) -> float:
    return 1 / 0


FAULTS: list[tuple[str, Any, str, str]] = [
    ("a label that is not offered", "maybe", "invalid_judgement", "the label is 'maybe'; expected one of yes, so, no"),
    ("too many", ["yes"] * 3, "invalid_judgement", "returned 3 answers for 2 claims"),
    ("no answer", {"yes": 1}, "invalid_judgement", "returned dict; expected a label"),
    ("no probability", ("yes", 1.5), "invalid_judgement", "the probability is 1.5"),
    ("a pointer to nothing", callgrade.Answer("no", pointer="/steps/9"), "invalid_judgement", "'/steps/9' leads to"),
    ("a crash", crash, "provider_error", "ZeroDivisionError"),
]


@pytest.mark.parametrize(("answer", "cause", "words"), [one[1:] for one in FAULTS], ids=[one[0] for one in FAULTS])
def test_a_fault_is_an_error_and_no_score(answer: Any, cause: str, words: str) -> None:
    register(answer)
    cache = MemoryCache()
    [vote] = ask(cache=cache)
    assert isinstance(vote, Errored)
    assert vote.cause == cause
    assert words in vote.reason
    assert not cache.texts


def test_it_answers_only_its_criterion() -> None:
    register("yes", "another")
    [vote] = ask()
    assert vote == Skipped("not_asked", NO_JUDGE)
    [vote] = ask(models=["python/mine"])
    assert (vote.cause, vote.reason) == ("invalid_judgement", "python/mine answers only another")
    [vote] = ask(models=["python/yours"])
    assert (vote.cause, "known: python/mine" in vote.reason) == ("unknown_model", True)


def test_an_answer_is_cached_until_the_function_changes() -> None:
    cache = MemoryCache()
    register("yes")
    assert [ask(cache=cache)[0].cache for _ in range(2)] == ["miss", "hit"]

    @callgrade.judge("it", name="mine")
    def mine() -> str:
        return "no"

    [vote] = ask(cache=cache)
    assert (vote.cache, vote.judgement.label) == ("miss", "no")


def test_a_class_is_built_once_and_a_coroutine_awaited() -> None:
    built: list[int] = []

    @callgrade.judge("it")
    class Encoder:
        def __init__(self) -> None:
            built.append(1)

        async def __call__(self, labels: tuple[str, ...]) -> str:
            return labels[0]

    assert [vote.judgement.label for _ in range(2) for vote in ask(mode="fresh")] == ["yes", "yes"]
    assert len(built) == 1
    assert Encoder.__name__ == "Encoder"


def coloured(claims: list[str], colour: str) -> str:
    return claims[0] + colour


def test_what_cannot_be_registered_is_refused() -> None:
    with pytest.raises(TypeError, match="not colour"):
        callgrade.judge("it")(coloured)
    with pytest.raises(ValueError, match="expected at least 1"):
        callgrade.judge("it", at_once=0)

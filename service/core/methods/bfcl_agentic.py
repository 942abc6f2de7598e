"""BFCL's check of agentic answers (web search, memory): is one of the accepted answers in the last text?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal, cast

from pydantic import JsonValue

from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, Part, SubjectOutcome
from service.core.gates.answer import AnswerGate, score_silence
from service.core.gates.compat import build_method_score
from service.core.outcome import Outcome, Skipped

_STRIPPED = re.compile(r"[,./\-_*^()]")

STRIPPED_BEFORE = "it takes punctuation out of numbers too, so that 3.14 is 314, and reads the last text that was said"


class BfclAgenticGate(Check):
    """Look for an accepted answer in the final text, as a word or number of its own: 1.0 if there is one, else 0.0.

    Takes BFCL's gold, with a list of texts as `possible_answer`, or any expected `answer`. With `compat` in the rubric, the
    score is the leaderboard's own verdict, from gold alone. Neither knows negation: "not Paris but Rome" contains Paris.
    Finding: `wrong_answer`. Source: ShishirPatil/gorilla, `agentic_checker.py`.
    """

    kind: Literal["bfcl_agentic"] = "bfcl_agentic"
    has_own_number: ClassVar[bool] = True
    looks_at: ClassVar[frozenset[Part]] = frozenset({"text"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"answer"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        return [(WHOLE, self._score_upstream(case))] if case.matching.compat else AnswerGate().look(case)

    def _score_upstream(self, case: Case) -> Outcome:
        accepted = _list_accepted(case)
        if not accepted:
            return Skipped("not_applicable", "no gold of BFCL names accepted answers")
        texts = [message.text for message in case.trace.messages if message.role == "assistant" and message.text]
        if not texts:
            return score_silence(case, None)
        case.meter.spend("characters", len(accepted) * len(texts[-1]) + sum(map(len, accepted)))
        raw = float(any(contains_answer(texts[-1], one) for one in accepted))
        return build_method_score(self, case, raw, system="BFCL", why=STRIPPED_BEFORE)


def contains_answer(text: str, accepted: str) -> bool:
    """Whether BFCL finds an accepted answer in a text.

    >>> [
    ...     contains_answer(*pair)
    ...     for pair in (("It is 3.14.", "314"), ("Not Paris but Rome", "paris"), ("Parisian", "Paris"))
    ... ]
    [True, True, False]
    """
    return re.search(rf"\b{re.escape(_strip(accepted))}\b", _strip(text)) is not None


def _strip(text: str) -> str:
    return _STRIPPED.sub("", text).lower().replace("'", '"')


def _list_accepted(case: Case) -> list[str]:
    gold = cast("Mapping[str, JsonValue]", (case.expectation.gold if case.expectation else None) or {})
    answers = gold.get("possible_answer") if gold.get("format") == "bfcl" else None
    return [one for one in answers if isinstance(one, str)] if isinstance(answers, list) else []

"""Answer keys of the Berkeley Function-Calling Leaderboard."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, Literal, cast

from service.core.expectations.expectation import Expectation
from service.core.methods.bfcl_number import Answer, Doc, convert
from service.core.models.kinds import Several
from service.core.trace import ToolDef
from service.errors import InputError
from service.intake.gold.base import GoldForm, match_words


class BfclGold(GoldForm):
    """A BFCL answer key. `possible_answer` null: no function fits, and none should be called.

    For an agentic question, `possible_answer` lists texts, one of which must be in the answer.
    """

    place: ClassVar[int] = 1
    format: Literal["bfcl"]
    category: str | None = None
    possible_answer: Several[dict[str, Any]] | Several[str] | None

    def expect(self, tools: Iterable[ToolDef]) -> Expectation:
        """Build call patterns from the key, or expect no call.

        Functions are named as the tools are, with "_" for "." if need be.
        """
        raw, docs = self.possible_answer, [cast("Doc", {"name": t.name, "parameters": t.parameters}) for t in tools]
        shown = {cast("str", doc["name"]) for doc in docs}
        answers = [one if isinstance(one, str) else _name_as_shown(one, shown) for one in raw or ()]
        plain = {"format": "bfcl", "category": self.category, "possible_answer": None if raw is None else answers}
        if raw is None:
            return Expectation.model_validate({"calls": "none", "gold": plain})
        texts = [one for one in answers if isinstance(one, str)]
        if texts:
            return Expectation.model_validate({"answer": _match_any(texts), "gold": plain})
        patterns = convert(cast("list[Answer]", answers), docs)
        return Expectation.model_validate({"calls": patterns, "gold": plain})


def _name_as_shown(answer: Mapping[str, Any], shown: Collection[str]) -> dict[str, Any]:
    """Rename an answer's functions to the names under which the model saw them."""
    plain = {name: name.replace(".", "_") for name in answer}
    return {
        plain[name] if name not in shown and plain[name] in shown else name: accepted
        for name, accepted in answer.items()
    }


def _match_any(texts: list[str]) -> dict[str, object]:
    """Match an answer that contains one of the texts.

    Raises InputError if all are blank, since any answer contains a blank text.
    """
    matchers = [match_words(text) for text in texts if text.strip()]
    if not matchers:
        raise InputError.at("/expected/possible_answer", "every answer contains a blank text")
    return {"kind": "any_of", "of": matchers}

"""A criterion in words, which only a judge can decide."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from service.core.critics.base import Critic, Match, OpenComparison, WordsComparison


class NaturalLanguage(Critic):
    """What the value must be, in words: the judge `natural_language` is asked. With no judge it is not measured.

    Alignment takes any value for it; only the pairs it leads to are asked.

    >>> polite = NaturalLanguage(criterion="a polite greeting")
    >>> polite.match("Dear all,").reason
    'a judge must say whether it is: a polite greeting'
    """

    kind: Literal["natural_language"] = "natural_language"
    criterion: str = Field(min_length=1, max_length=4_000)
    """What the value must be, for example `a subject line that names the order`."""

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:  # noqa: ARG002
        """Never a match: it is left to a judge."""
        reason = f"a judge must say whether it is: {self.criterion}"
        return WordsComparison(reason, "not_asked", words=self.criterion, value=actual)

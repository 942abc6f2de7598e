"""The matcher for a criterion in words, which only a judge can decide."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from service.core.critics.base import Critic, Match, OpenComparison, WordsComparison


class NaturalLanguage(Critic):
    """A description in words of what the value must be, for the judge `natural_language`. Without a judge, it is not measured.

    The alignment treats any value as fitting; the judge is asked only about the pairs that it chooses.

    >>> polite = NaturalLanguage(criterion="a polite greeting")
    >>> polite.match("Dear all,").reason
    'a judge must say whether it is: a polite greeting'
    """

    kind: Literal["natural_language"] = "natural_language"
    criterion: str = Field(min_length=1, max_length=4_000)
    """What the value must be, for example `a subject line that names the order`."""

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:  # noqa: ARG002
        """Return an open comparison: it is left to a judge."""
        reason = f"a judge must say whether it is: {self.criterion}"
        return WordsComparison(reason, "not_asked", words=self.criterion, value=actual)

"""Matchers for texts, by pattern, part or similarity."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, JsonValue, field_validator

from service.core.critics.base import MATCHED, Critic, Match, OpenComparison, ValueCritic, build_mismatch, refuse
from service.core.critics.similarity import MAX_COMPARED_CHARS, Metric, measure_similarity
from service.core.json.values import equals
from service.core.regex import compile_regex


class Pattern(Critic):
    r"""A string that matches a regular expression: the whole string, unless `search` is set.

    >>> [Pattern(pattern="[A-Z]{2}[0-9]+").match(actual).value for actual in ("AB12", "xAB12", "AB12\n", 12)]
    [1.0, 0.0, 0.0, 0.0]
    >>> [Pattern(pattern="(?i)refund", search=True).match(actual).value for actual in ("No Refunds", "none")]
    [1.0, 0.0]
    """

    kind: Literal["pattern"] = "pattern"
    pattern: str
    """A regular expression in Rust's syntax: no look-around, no back-references, always in linear time."""
    search: bool = False
    """Whether a match anywhere in the string is enough."""

    @field_validator("pattern")
    @classmethod
    def _check_pattern(cls, pattern: str) -> str:
        compile_regex(pattern)
        return pattern

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:  # noqa: ARG002
        """Return 1 or 0; open over 100,000 characters, or 2,000 for a very large pattern."""
        if not isinstance(actual, str):
            return refuse("a string like", self.pattern, actual)
        compiled = compile_regex(self.pattern, search=self.search)
        if len(actual) > compiled.longest:
            most = f"this pattern reads at most {compiled.longest}"
            return OpenComparison(f"a string of {len(actual)} characters; {most}")
        if compiled.matches(actual):
            return MATCHED
        return refuse("a match of" if self.search else "a string like", self.pattern, actual)


class Contains(Critic):
    """A string that contains `value`, or an array with `value` as an item, by typed equality.

    >>> [Contains(value="ab").match(actual).value for actual in ("xaby", "AB", ["ab"], ["abc"], {"ab": 1}, None)]
    [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    >>> [Contains(value=1).match(actual).value for actual in ([1.0], [True], "1", 1)]
    [1.0, 0.0, 0.0, 0.0]
    """

    kind: Literal["contains"] = "contains"
    value: JsonValue
    """The part of the string, or the item."""
    ignore_case: bool = False
    """Whether case is ignored, in the string and in items that are strings."""

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:  # noqa: ARG002
        """Return 1 or 0."""
        if isinstance(actual, list) and self._is_item(actual):
            return MATCHED
        fold, value = self.ignore_case, self.value
        if isinstance(actual, str) and isinstance(value, str) and _fold(value, fold) in _fold(actual, fold):
            return MATCHED
        return refuse("something that contains", self.value, actual)

    def _is_item(self, items: list[JsonValue]) -> bool:
        if not self.ignore_case or not isinstance(self.value, str):
            return any(equals(item, self.value) for item in items)
        value = self.value.casefold()
        return any(isinstance(item, str) and item.casefold() == value for item in items)


class Prefix(Critic):
    """A string that begins with `value`.

    >>> [Prefix(value="ORD-").match(actual).value for actual in ("ORD-1", "ord-1", "x ORD-1", None)]
    [1.0, 0.0, 0.0, 0.0]
    """

    kind: Literal["prefix"] = "prefix"
    value: str
    """The beginning."""
    ignore_case: bool = False
    """Whether case is ignored."""

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:  # noqa: ARG002
        """Return 1 or 0."""
        fold = self.ignore_case
        if isinstance(actual, str) and _fold(actual, fold).startswith(_fold(self.value, fold)):
            return MATCHED
        return refuse("a string that begins with", self.value, actual)


class Suffix(Critic):
    """A string that ends with `value`.

    >>> [Suffix(value=".pdf", ignore_case=True).match(actual).value for actual in ("a.pdf", "a.PDF", "a.pdf ", 1)]
    [1.0, 1.0, 0.0, 0.0]
    """

    kind: Literal["suffix"] = "suffix"
    value: str
    """The end."""
    ignore_case: bool = False
    """Whether case is ignored."""

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match:  # noqa: ARG002
        """Return 1 or 0."""
        fold = self.ignore_case
        if isinstance(actual, str) and _fold(actual, fold).endswith(_fold(self.value, fold)):
            return MATCHED
        return refuse("a string that ends with", self.value, actual)


def _fold(text: str, ignore_case: bool) -> str:  # noqa: FBT001
    return text.casefold() if ignore_case else text


class Similar(ValueCritic):
    """A text similar to the expected one. The value is the similarity; it passes from `threshold` on.

    An array of strings is read as one text, joined by spaces. If either side is anything else, only the identical value
    matches.

    >>> [
    ...     round(Similar(value="hello world").match(actual).value, 3)
    ...     for actual in ("World, hello!", "hello there", "", None)
    ... ]
    [1.0, 0.336, 0.0, 0.0]
    >>> [Similar(value="abcd", metric="levenshtein").match(actual).value for actual in ("abcx", "ABCD")]
    [0.75, 0.0]
    """

    cost: ClassVar[int] = 10
    kind: Literal["similar"] = "similar"
    metric: Metric = "cosine"
    """cosine: TF-IDF over words, in any order. arcade_cosine: the same as Arcade computes it, blind to one-character words.
    levenshtein: edit distance. token_set: common words, and 1 if one text contains all words of the other."""
    threshold: float = Field(default=0.8, ge=0, le=1)
    """The similarity that passes."""
    ignore_case: bool = False
    """Whether case is ignored: a choice for levenshtein and token_set; both cosines always ignore it."""

    def compare(self, actual: JsonValue, expected: JsonValue = None) -> Match | OpenComparison:
        """Return the similarity in [0, 1]; open where the texts differ and one is over 5,000 characters."""
        got, want = self._read_text(actual), self._read_text(expected)
        if got is None or want is None:
            return MATCHED if equals(actual, expected) else build_mismatch(actual, expected)
        if got != want and max(len(got), len(want)) > MAX_COMPARED_CHARS:
            longer = max(len(got), len(want))
            return OpenComparison(f"a text of {longer} characters; at most {MAX_COMPARED_CHARS} are compared")
        value = measure_similarity(got, want, self.metric)
        if value >= self.threshold:
            return Match(value, True)
        why = f"{self.metric} similarity {value:.3f} is below {self.threshold}"
        return build_mismatch(actual, expected, value=value, why=why)

    def _read_text(self, value: JsonValue) -> str | None:
        if isinstance(value, list) and value:
            words = [word for word in value if isinstance(word, str)]
            value = " ".join(words) if len(words) == len(value) else None
        if not isinstance(value, str):
            return None
        return value.casefold() if self.ignore_case and "cosine" not in self.metric else value

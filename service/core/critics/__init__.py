"""The argument matchers. Each compares one actual value with what was expected and gives a value in [0, 1].

A matcher is a frozen pydantic class; the doctests of its class are the table of its cases. How much a matcher weighs is
not its business: weights stand on criteria and arguments.
"""

from service.core.critics.base import MATCHED, Critic, Match, Uncompared, Unjudged, Valued
from service.core.critics.dates import DateTime
from service.core.critics.numbers import Numeric, Range
from service.core.critics.plain import AnyOf, Exact, OneOf, Present
from service.core.critics.similarity import arcade_cosine, cosine
from service.core.critics.text import Contains, Pattern, Prefix, Similar, Suffix
from service.core.critics.trees import JsonSimilar
from service.core.critics.words import NaturalLanguage

__all__ = [
    "MATCHED",
    "AnyOf",
    "Contains",
    "Critic",
    "DateTime",
    "Exact",
    "JsonSimilar",
    "Match",
    "NaturalLanguage",
    "Numeric",
    "OneOf",
    "Pattern",
    "Prefix",
    "Present",
    "Range",
    "Similar",
    "Suffix",
    "Uncompared",
    "Unjudged",
    "Valued",
    "arcade_cosine",
    "cosine",
]

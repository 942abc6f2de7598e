"""The argument matchers. Each compares one actual value with the expected one and returns a value in [0, 1].

A matcher is a frozen pydantic class; the doctests of its class are the table of its cases. A matcher does not know its weight:
criteria and arguments have weights.
"""

import sys

from service.core.critics.base import MATCHED, Critic, Match, OpenComparison, ValueCritic, WordsComparison
from service.core.critics.dates import DateTime
from service.core.critics.numbers import Numeric, Range
from service.core.critics.plain import AnyOf, Exact, OneOf, Present
from service.core.critics.similarity import arcade_cosine, cosine
from service.core.critics.text import Contains, Pattern, Prefix, Similar, Suffix
from service.core.critics.trees import JsonSimilar
from service.core.critics.words import NaturalLanguage
from service.core.models.discovery import import_all

# A file in this package is enough: its matcher joins the union without an import here.
import_all(sys.modules[__name__])

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
    "OpenComparison",
    "Pattern",
    "Prefix",
    "Present",
    "Range",
    "Similar",
    "Suffix",
    "ValueCritic",
    "WordsComparison",
    "arcade_cosine",
    "cosine",
]

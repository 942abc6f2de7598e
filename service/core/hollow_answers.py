"""Recognise answers without content. Some of them make language-model judges accept anything."""

from __future__ import annotations

import unicodedata

MASTER_KEYS = frozenset(
    {
        "thought process",
        "let's solve this problem step by step",
        "solution",
        "解",
        "かいせつ",
        "respuesta",
    }
)
"""Zhao et al., "One Token to Fool LLM-as-a-Judge" (arXiv 2507.08794, table 1): strong judges reward them although they
say nothing."""


def is_hollow(text: str) -> bool:
    """Whether a text is empty, only punctuation, or one of the phrases that judges are known to reward.

    >>> [is_hollow(text) for text in ("", ":", "Thought process:", "**Solution**", "Done.", "42", "Solution: 42", "👍")]
    [True, True, True, True, False, False, False, False]
    """
    return all(_says_nothing(line) for line in text.splitlines())


def _says_nothing(line: str) -> bool:
    plain = unicodedata.normalize("NFKC", line)
    unseen = {char for char in set(plain) if unicodedata.category(char)[0] == "C" and not char.isspace()}
    plain = plain.translate(dict.fromkeys(map(ord, unseen)))
    edges = {char for char in set(plain) if char in _MARKUP or char.isspace() or unicodedata.category(char)[0] in "PZ"}
    core = " ".join(plain.strip("".join(edges)).split()).casefold()
    return not core or core.replace("\u2019", "'") in MASTER_KEYS


_MARKUP = frozenset("`~|<>^=+$")
"""Symbols used as markup. Punctuation, white space and control characters are recognised by their Unicode category."""

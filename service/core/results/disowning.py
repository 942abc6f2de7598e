"""Find words around JSON that say, or may say, that it is not what the tool returned."""

from __future__ import annotations

import re

MAX_WORDS = 40
"""The most words around the JSON of a text that pass for a label or a courtesy; a text with more is a document with examples."""
MAX_LABEL_WORDS = 12
"""The words allowed for each further passage."""

_WORD = re.compile(r"\w+")
_FOREIGN_LETTER = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f]")
"""A letter of a script whose words this module does not know."""
_DISOWNING_WORDS = re.compile(
    r"\b(?:ex[ae]mpl\w*|e\.? ?g\b|for instance|such as|like this|samples?|specimen|illustrat\w+|typical\w*|hypothetical\w*"
    r"|(?<!\bin )(?<!\bjson )formats?|schemas?|templates?|placeholders?|syntax|structure|shape|dummy|mock\w*|fake"
    r"|should|would|expect\w*|intended|not|never|no longer|instead|rather than|unlike"
    r"|old(?:er)?|former(?:ly)?|previous(?:ly)?|before|earlier|outdated|deprecated|obsolete|stale|wrong|incorrect|invalid"
    r"|requests?|inputs?|arguments?|parameters?"
    r"|beispiel\w*|z\. ?b\b|muster|vorlage|(?:an)?statt|nicht|kein\w*|alte?|bisher\w*|falsch\w*"
    r"|mod[eè]le|au lieu|ancien\w*|e[js]e?mpio\w*|ejemplo\w*|formato|voorbeeld\w*|przykład\w*)\b|n['\u2019]t\b",
    re.IGNORECASE,
)


def disowns(prose: str, passages: int) -> bool:
    """Whether the prose around a number of JSON passages casts doubt on their being what the tool returned.

    This module knows few words, so it errs on the side of doubt, which is cheap (a suspicion is still looked into), and long
    prose alone is enough.

    >>> disowns("Here is the result:", 1), disowns("Example of the format:", 1)
    (False, True)
    """
    if not prose.strip():
        return False
    is_long = len(_WORD.findall(prose)) > MAX_WORDS + MAX_LABEL_WORDS * (passages - 1)
    return is_long or bool(_FOREIGN_LETTER.search(prose) or _DISOWNING_WORDS.search(prose))

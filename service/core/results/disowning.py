"""Words around JSON that say, or may say, that it is not what the tool returned."""

from __future__ import annotations

import re

MAX_WORDS = 40
"""Words beside the JSON of a text, as a label or a courtesy has them; one with more is a document that shows some."""
MAX_LABEL_WORDS = 12
"""Words for each further passage."""

_WORD = re.compile(r"\w+")
_FOREIGN = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f]")
"""A letter of a script whose words are not known here."""
_DISOWNS = re.compile(
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
    """Whether what stands beside so many passages of JSON leaves it open that they are what the tool returned.

    The words known here are few, so a mark too many is cheap (what is suspected is still looked at) and long prose is one.

    >>> disowns("Here is the result:", 1), disowns("Example of the format:", 1)
    (False, True)
    """
    if not prose.strip():
        return False
    words = len(_WORD.findall(prose))
    many = words > MAX_WORDS + MAX_LABEL_WORDS * (passages - 1)
    return many or bool(_FOREIGN.search(prose) or _DISOWNS.search(prose))

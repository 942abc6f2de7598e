"""Names of members, as reasons quote them, and those that hold a reference."""

from __future__ import annotations

import re

MAX_QUOTED_NAME_CHARS = 60
"""Characters of a source's name that a reason quotes."""

_REFERENCE = re.compile(
    r"(?i:expected|gold|golden|reference|ground_?truth|few_?shot|example)(?i:s?)(?:$|[_A-Z-].*)", re.DOTALL
)
"""Members of a record that hold a reference: what should have been done, or what was done elsewhere. Calls in them
were not made in this trace.
"""


def is_reference(name: str, path: str) -> bool:
    """Whether a member of the record, whose pointer is "", holds a reference."""
    return path == "" and _REFERENCE.fullmatch(name) is not None


def clip(name: str) -> str:
    """Shorten a source's name to what a reason quotes."""
    return name if len(name) <= MAX_QUOTED_NAME_CHARS else name[:MAX_QUOTED_NAME_CHARS] + "..."

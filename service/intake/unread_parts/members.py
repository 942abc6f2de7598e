"""Names of members, as reasons quote them."""

from __future__ import annotations

MAX_QUOTED_NAME_CHARS = 60


def clip(name: str) -> str:
    """Shorten a source's name to what a reason quotes."""
    return name if len(name) <= MAX_QUOTED_NAME_CHARS else name[:MAX_QUOTED_NAME_CHARS] + "..."

"""Recognise parts of results that are neither JSON nor text."""

from __future__ import annotations

from pydantic import JsonValue

from service.core.json.members import list_items, read_type

MEDIA = frozenset(
    {"image", "image_url", "input_image", "audio", "input_audio", "video", "file", "input_file", "document", "resource"}
)
"""The types of the parts of a result that code cannot read."""


def has_media(content: JsonValue) -> bool:
    """Whether a part of a result is neither JSON nor text.

    >>> has_media([{"type": "image", "data": "..."}]), has_media([{"type": "text", "text": "W77"}])
    (True, False)
    """
    parts = content.get("content") if isinstance(content, dict) else content
    return any(read_type(part) in MEDIA for part in list_items(parts))

"""Names of models that providers version: which are snapshots of one model."""

from __future__ import annotations

import re

VERSION = re.compile(r"[-:@](\d{3,8}|\d{4}-\d\d-\d\d|latest)")
"""What stands behind a model's name where it is a version of it, and not a size."""

_LAST = re.compile(VERSION.pattern + r"\Z")


def strip_version(model: str) -> str:
    """The model's name without its provider and version; of a jury, those of its members.

    >>> strip_version("openai/GPT-5-mini-2026-08-07"), strip_version("a-0613+b:latest"), strip_version("qwen3:8b")
    ('gpt-5-mini', 'a+b', 'qwen3:8b')
    """
    return "+".join(sorted(_LAST.sub("", one.rpartition("/")[2].casefold()) for one in model.split("+")))

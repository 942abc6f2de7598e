"""Recognise snapshots of one model by the versions in the names that providers give."""

from __future__ import annotations

import re

VERSION = re.compile(r"[-:@](\d{3,8}|\d{4}-\d\d-\d\d|latest)")
"""A suffix of a model's name that is a version, not a size."""

_LAST = re.compile(VERSION.pattern + r"\Z")


def strip_version(model: str) -> str:
    """Return the model's name without provider and version; for a jury, the joined names of its members.

    >>> strip_version("openai/GPT-5-mini-2026-08-07"), strip_version("a-0613+b:latest"), strip_version("qwen3:8b")
    ('gpt-5-mini', 'a+b', 'qwen3:8b')
    """
    return "+".join(sorted(_LAST.sub("", one.rpartition("/")[2].casefold()) for one in model.split("+")))

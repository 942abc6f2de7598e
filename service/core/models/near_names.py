"""What somebody may have meant by the name of a field that no model has there."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from functools import lru_cache

from service.core.models.kinds import FrozenModel, list_subclasses

SYNONYMS = {"name": "tool", "function": "tool", "arguments": "args", "parameters": "args", "input": "args"}
"""What others call a field of ours."""

LONGEST_NAME = 40
"""Characters of a name to which near ones are looked for."""


def suggest_name(name: str, siblings: Collection[str]) -> str | None:
    """The field that was meant, judged by the fields that stand beside it; None where none is near.

    >>> import service.core.expectations.expectation
    >>> suggest_name("arguements", ["tool"]), suggest_name("arguments", ["tool"]), suggest_name("colour", ["tool"])
    ('args', 'args', None)
    >>> suggest_name("tool", []) == "tool"  # which was refused where it stands
    False
    """
    if len(name) > LONGEST_NAME:
        return None
    fields = _list_fields(frozenset(siblings)) - {*siblings, name}
    near = get_close_matches(name, [*fields, *SYNONYMS], n=3, cutoff=0.75)
    return next((one for found in near if (one := SYNONYMS.get(found, found)) in fields), None)


@lru_cache(maxsize=256)
def _list_fields(siblings: frozenset[str]) -> frozenset[str]:
    """The fields of all models that have these."""
    models = [set(cls.model_fields) for cls in list_subclasses(FrozenModel) if siblings <= cls.model_fields.keys()]
    return frozenset(set[str]().union(*models))

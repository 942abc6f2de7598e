"""Suggest the field that somebody may have meant by an unknown name."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from functools import lru_cache

from service.core.models.kinds import FrozenModel, list_subclasses

SYNONYMS = {
    **dict.fromkeys(("name", "function"), "tool"),
    **dict.fromkeys(("arguments", "parameters", "input"), "args"),
    **dict.fromkeys(
        ("never", "forbid", "forbidden", "forbidden_tools", "ban", "banned", "deny", "denied"), "disallowed"
    ),
    **dict.fromkeys(("denylist", "blacklist", "prohibited", "not_allowed", "disallowed_tools"), "disallowed"),
    **dict.fromkeys(("allow", "only", "allowed_tools", "allowlist", "whitelist", "permitted"), "allowed"),
    **dict.fromkeys(("expected_calls", "tool_calls", "required", "must_call"), "calls"),
    **dict.fromkeys(("except", "unless", "excluding"), "but"),
}
"""Other names for our fields."""

MAX_HINTED_NAME_CHARS = 40
"""The longest name, in characters, that gets a suggestion."""


def suggest_name(name: str, siblings: Collection[str]) -> str | None:
    """Return the field that was probably meant, among models that have the fields beside it; None if none is similar.

    >>> import service.core.expectations.expectation
    >>> suggest_name("arguements", ["tool"]), suggest_name("arguments", ["tool"]), suggest_name("colour", ["tool"])
    ('args', 'args', None)
    >>> suggest_name("tool", []) == "tool"  # it was just refused there
    False
    """
    if len(name) > MAX_HINTED_NAME_CHARS:
        return None
    here = _list_fields(frozenset(siblings))
    fields = here - {*siblings, name}
    near = get_close_matches(name, [*fields, *SYNONYMS], n=3, cutoff=0.75)
    meant = next((one for found in near if (one := SYNONYMS.get(found, found)) in fields), None)
    if meant is None and "expected" in here:
        inner = SYNONYMS.get(name, name)
        return f"expected.{inner}" if inner in _list_fields(frozenset({"calls"})) else None
    return meant


@lru_cache(maxsize=256)
def _list_fields(siblings: frozenset[str]) -> frozenset[str]:
    """Return the fields of all models that have these."""
    models = [set(cls.model_fields) for cls in list_subclasses(FrozenModel) if siblings <= cls.model_fields.keys()]
    return frozenset(set[str]().union(*models))

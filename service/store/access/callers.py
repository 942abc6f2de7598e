"""Callers, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Scope = Literal["score", "batch", "calibrate", "label", "metrics", "admin"]
"""What a key is for: scoring and rubrics, batches, calibrations, labels, /metrics, and everything with the audit log."""

SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. `tenant` separates what belongs to them: batches, cached judgements, limits."""

    tenant: str
    key_id: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope | None) -> bool:
        """Whether the caller may do what needs this scope; None needs none.

        >>> Caller("t", "k", frozenset({"score"})).may("batch"), Caller("t", "k", frozenset({"admin"})).may("batch")
        (False, True)
        """
        return scope is None or scope in self.scopes or "admin" in self.scopes


NAMELESS = Caller("", "", frozenset({"admin"}))
"""The caller where no keys exist. No key has this tenant."""

UNKNOWN = Caller("", "", frozenset())
"""A visitor to the pages who is not signed in, and may do nothing."""

"""Combine what JSON proves about a text with what inferred structure only makes suspect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from service.core.evidence.narration.verdicts import ClaimVerdict

Place = tuple[int, int]


def weigh(proved: Sequence[ClaimVerdict], guessed: Iterable[ClaimVerdict]) -> list[ClaimVerdict]:
    """Combine the verdicts by JSON facts alone (`proved`) with those by all facts, inferred ones included (`guessed`).

    A contradiction stands if both find it. If only one does it is a suspicion: inferred facts either make it or speak
    against it. What only inferred facts support is not checkable, just like support in prose.
    """
    others: dict[Place, ClaimVerdict] = {}
    for claim in guessed:
        before = others.get((claim.start, claim.end))
        if before is None or before.verdict != "contradicted":
            others[claim.start, claim.end] = claim
    joined = [_join(claim, others.pop((claim.start, claim.end), None)) for claim in proved]
    joined += [_suspect(claim) for claim in others.values() if claim.verdict in ("contradicted", "suspected")]
    return sorted(joined, key=lambda claim: (claim.start, claim.end))


def _join(claim: ClaimVerdict, other: ClaimVerdict | None) -> ClaimVerdict:
    if claim.verdict == "suspected":  # a suspicion from some of the facts gives way to `guessed`
        claim = replace(claim, verdict="not_checkable", code=None, note=None)
    contradicted = other is not None and other.verdict == "contradicted"
    if claim.verdict == "contradicted":
        return claim if contradicted else _suspect(claim)
    if other is None or claim.verdict == "supported":
        return claim
    if contradicted:
        return _suspect(other)
    return replace(other, verdict="not_checkable") if other.verdict == "supported" else other


def _suspect(claim: ClaimVerdict) -> ClaimVerdict:
    return replace(claim, verdict="suspected")

"""What JSON proves of a text, beside what structure that is inferred makes suspect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from service.core.evidence.narration.verdicts import ClaimVerdict

Place = tuple[int, int]


def weigh(proved: Sequence[ClaimVerdict], guessed: Iterable[ClaimVerdict]) -> list[ClaimVerdict]:
    """The verdicts on the claims of a text, by the facts of JSON (`proved`) and by all facts, inferred ones too (`guessed`).

    A contradiction stands where both find it. Where only one does, it is suspected: the facts that are inferred make it or
    speak against it. What only they support cannot be checked, as is so of prose that says it.
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
    if claim.verdict == "suspected":  # all facts together say more, and prove nothing
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

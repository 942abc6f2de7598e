"""What code found about claims and arguments, in one form, whether it comes from a check or a judge's evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from service.core.evidence.evidenced import EvidencedScore, Suspicion
from service.core.evidence.narration.verdicts import ClaimVerdict
from service.core.evidence.provenance.located import LeafOrigin
from service.core.judging.judged_outcomes import JudgedScore, UnsureJudgement
from service.core.judging.withholding import WithheldJudgement
from service.core.report import Report, ReportOutcome


class EvidenceItem(NamedTuple):
    """One claim of a text, or one argument of a call, and what it rests on."""

    path: str
    """The pointer of the text, or of the argument."""
    sign: str
    """The verdict: `supported`, `contradicted`, `suspected`, `not_checkable`; of arguments `located`, `open`, `nowhere`."""
    text: str = ""
    """The words of a claim; empty for an argument."""
    start: int | None = None
    """Where the words start in the text; None: unknown."""
    source: str = ""
    """The pointer of what supports or contradicts it."""
    note: str = ""
    origin: str = ""
    """Where an argument comes from (`user`, `result`, `derived`, ...)."""
    transform: str = ""


def list_evidence(report: Report) -> Iterator[EvidenceItem]:
    """Yield the evidence of a report, each claim or argument once; a contradiction takes precedence."""
    found: dict[tuple[str, int | None, str], EvidenceItem] = {}
    for outcome in list_report_outcomes(report):
        for item in _list_items(outcome):
            key = (item.path, item.start, item.text)
            before = found.get(key)
            if before is None or (item.sign in WRONG and before.sign not in WRONG):
                found[key] = item
    yield from found.values()


WRONG = frozenset({"contradicted", "nowhere"})
"""Signs of what is proved wrong."""


def list_report_outcomes(report: Report) -> Iterator[ReportOutcome]:
    """Yield every outcome, those of the trace first."""
    for criterion in report.criteria:
        for loose in criterion.outcomes:
            yield loose.outcome
    for step in report.steps:
        yield from step.outcomes.values()


def _list_items(outcome: ReportOutcome) -> Iterator[EvidenceItem]:
    if isinstance(outcome, EvidencedScore | Suspicion):
        for one in outcome.evidence:
            yield _read_claim(one) if isinstance(one, ClaimVerdict) else _read_origin(one)
    elif isinstance(outcome, JudgedScore | WithheldJudgement | UnsureJudgement):
        yield from _read_shown(outcome.evidence)


def _read_claim(one: ClaimVerdict) -> EvidenceItem:
    return EvidenceItem(
        one.path, one.verdict, one.text, one.start, one.source or "", one.note or "", "", one.transform or ""
    )


def _read_origin(one: LeafOrigin) -> EvidenceItem:
    return EvidenceItem(
        one.path, one.status, "", None, one.source or "", one.note or "", one.origin, one.transform or ""
    )


def _read_shown(evidence: object) -> Iterator[EvidenceItem]:
    """Read evidence as a judge was shown it: the same, without nulls and without positions in texts."""
    if not isinstance(evidence, list):
        return
    for one in cast("Sequence[object]", evidence):
        if isinstance(one, Mapping):
            fields = {
                name: value for name, value in cast("Mapping[str, object]", one).items() if isinstance(value, str)
            }
            sign = fields.get("verdict") or fields.get("status")
            if "path" in fields and sign:
                yield EvidenceItem(
                    fields["path"],
                    sign,
                    fields.get("text", ""),
                    None,
                    fields.get("source", ""),
                    fields.get("note", ""),
                    fields.get("origin", ""),
                    fields.get("transform", ""),
                )

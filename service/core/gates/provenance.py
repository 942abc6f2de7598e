"""Step 3 of the contract, the content, where there is no reference: where does each argument come from?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from service.core.case import Case, build_call_path
from service.core.checks import WHOLE, Aggregate, Check, Part, SubjectOutcome
from service.core.evidence.evidenced import EvidencedScore, Suspicion
from service.core.evidence.provenance.located import PROVED
from service.core.evidence.provenance.provenance import locate_arguments
from service.core.evidence.provenance.sources import MAX_CHARACTERS, SourceIndex
from service.core.expectations.ignored_arguments import list_ignored
from service.core.gates.schema import score_unread
from service.core.json.pointers import escape_token
from service.core.outcome import Finding, Outcome, Skipped
from service.core.trace import Step


class ProvenanceGate(Check):
    """Check each call: 1.0 unless an identifier comes from nowhere or an argument contradicts the user's words, then 0.0.

    Every leaf of the arguments is traced to its source: a user's message, a result, the system's text, the tool's schema, a
    named transform of one of these, or none; `evidence` holds the map. Findings: `identifier_from_nowhere`;
    `order_of_magnitude`, for an amount with the digits that the user stated and the decimal point elsewhere; `wrong_date`, for
    a date other than the one the user gave. These are proved: everything the model could read was read, and no form of it
    (spoken, padded, prefixed, in other units, a share or a sum) gives the argument. An argument that is only likely wrong is
    `suspected_argument` and leaves the outcome open. A text, a choice or a number that is merely not found proves nothing.
    """

    kind: Literal["provenance"] = "provenance"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"call", "result"})

    default_aggregate: ClassVar[Aggregate] = "min"

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Yield one outcome for each step."""
        if not case.trace.steps:
            yield WHOLE, Skipped("not_applicable", "no call was made")
        for step in case.trace.steps:
            yield case.subjects[step.index], _score_step(case, step)


def get_sources(case: Case) -> SourceIndex:
    """Return the index of all messages and results, built once for a case."""
    return case.once(SourceIndex, lambda: SourceIndex(case.trace, case.meter))


def _score_step(case: Case, step: Step) -> Outcome:
    if step.call.arguments is None:
        return (
            score_unread(step) if not step.call.captured else Skipped("not_applicable", "the arguments are no object")
        )
    sources = get_sources(case)
    if sources.too_long:
        return Skipped("too_long", f"more than {MAX_CHARACTERS} characters of messages and results")
    located = tuple(locate_arguments(step, case.find_tool(step), sources))
    ignored = list_ignored(case.expectation, step)
    if ignored:
        places = tuple([f"{build_call_path(step)}/arguments/{escape_token(name)}" for name in ignored])
        located = tuple([one for one in located if not f"{one.path}/".startswith(tuple(f"{p}/" for p in places))])
    if not located:
        return Skipped("not_applicable", "the call has no arguments")
    findings = tuple([Finding(each.code, each.note or "", each.path) for each in located if each.code])
    statuses = {each.status for each in located}
    if "suspected" in statuses and not statuses & PROVED:
        return Suspicion(
            "not_asked", "an argument seems to be wrong, and nothing proves it", findings, evidence=located
        )
    return EvidencedScore(0.0 if findings else 1.0, not findings, findings, located)

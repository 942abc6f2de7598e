"""Step 3 of the contract, the content, where there is no reference: where does each argument come from?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from service.core.case import Case, build_call_path
from service.core.checks import WHOLE, Aggregate, Check, Part, SubjectOutcome
from service.core.expectations.merging import list_ignored
from service.core.gates.schema import score_unread
from service.core.grounding.arguments import PROVED, CallReader
from service.core.grounding.history import History
from service.core.grounding.origins import GroundedScore, GroundedSkip
from service.core.json.pointers import escape_token
from service.core.outcome import Finding, Outcome, Skipped
from service.core.trace import Step


class ProvenanceGate(Check):
    """Check each call: 1.0 unless an identifier comes from nowhere or an amount has its decimal point moved, then 0.0.

    `grounding` lists the origin of every leaf of the arguments: `found` in a result, `given` by user, system or tool's schema,
    `derived` by one step of arithmetic, `general`, or `nowhere`. Findings that fail: `identifier_from_nowhere`, where all that
    the model could read was read and no form of the identifier is in it; `order_of_magnitude`, for an amount with the digits of
    the only one that the user stated, where the parameter's unit is known. What is only likely wrong is `suspected_argument` and
    leaves the outcome open. A text, a choice or a number that is merely not found proves nothing.
    """

    kind: Literal["provenance"] = "provenance"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"call", "result"})

    default_aggregate: ClassVar[Aggregate] = "min"

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Yield one outcome for each step."""
        if not case.trace.steps:
            yield WHOLE, Skipped("not_applicable", "no call was made")
        reader = CallReader(case.once(History, lambda: History(case.trace)), case.meter)
        for step in case.trace.steps:
            yield case.subjects[step.index], _score_step(case, step, reader)


def _score_step(case: Case, step: Step, reader: CallReader) -> Outcome:
    located = reader.locate(step, case.find_tool(step))
    if step.call.arguments is None:
        unread = score_unread(step) if not step.call.captured else None
        return unread or Skipped("not_applicable", "the arguments are no object")
    ignored = list_ignored(case.expectation, step)
    if ignored:
        places = tuple([f"{build_call_path(step)}/arguments/{escape_token(name)}/" for name in ignored])
        located = [one for one in located if not f"{one.grounded.pointer}/".startswith(places)]
    if not located:
        return Skipped("not_applicable", "the call has no arguments")
    coded = [(one.grounded, one.note) for one in located if one.grounded.code]
    findings = tuple([Finding(one.code or "", note, one.pointer) for one, note in coded])
    origins = tuple([one.grounded for one in located])
    if findings and not any(finding.code in PROVED for finding in findings):
        reason = "an argument seems to be wrong, and nothing proves it"
        return GroundedSkip("not_asked", reason, findings, grounding=origins)
    return GroundedScore(0.0 if findings else 1.0, not findings, findings, origins)

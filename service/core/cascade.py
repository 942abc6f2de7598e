"""Evidence first, then the judge: what code proves is not asked, and what it finds is shown to the judge."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import Field, JsonValue, TypeAdapter

from service.core.case import Case
from service.core.checks import Aggregate, Subject
from service.core.evidence.evidenced import Evidenced
from service.core.gates.narration import NarrationGate
from service.core.gates.provenance import ProvenanceGate
from service.core.judges import Ask, Judge, JudgeCheck, is_answered
from service.core.outcome import Outcome

Evidence = Annotated[NarrationGate | ProvenanceGate, Field(discriminator="kind")]

_PLAIN: TypeAdapter[Any] = TypeAdapter(tuple[Any, ...])


class CascadeCheck(JudgeCheck):
    """A judged criterion on which code has the first word.

    Where the evidence contradicts, that is the outcome, and nobody is asked: a judge could only be talked out of it. All else
    is asked, with the evidence in view. Without a judge, contradictions are found all the same, and nothing else is scored.
    """

    kind: Literal["cascade"] = "cascade"  # pyright: ignore[reportIncompatibleVariableOverride] (its own place in the union)
    evidence: Evidence
    """The check that looks first: `narration` or `provenance`."""
    veto: Annotated[float, Field(ge=0, le=1)] | None = 0.0
    """The highest score the judge may give what the evidence contradicts. 0: it is not asked. null: it is free to give any."""

    by_default: ClassVar[Aggregate] = "min"

    def asks(
        self,
        case: Case,
        *,
        criterion: str,
        judges: Mapping[str, Judge],
        answered: Collection[Subject] = (),
    ) -> Iterable[tuple[Subject, Ask | Outcome]]:
        """What the evidence decides, and one question for each step, turn or the trace that it leaves open."""
        asked = list(super().asks(case, criterion=criterion, judges=judges))
        if all(is_answered(subject, answered) for subject, _ in asked):
            return asked  # looking costs
        found = _by_subject(self.evidence, case)
        settled = [(subject, self._settled(open_one, found.pop(subject, None))) for subject, open_one in asked]
        return [*settled, *[(at, one) for at, one in found.items() if not one.passed and self.veto == 0.0]]

    def _settled(self, open_one: Ask | Outcome, evidence: Evidenced | None) -> Ask | Outcome:
        if evidence is None:
            return open_one
        if not evidence.passed and self.veto == 0.0:
            return evidence
        if not isinstance(open_one, Ask):
            return open_one
        against = () if evidence.passed else evidence.findings
        return open_one._replace(
            evidence=_told(evidence), findings=against, veto=None if evidence.passed else self.veto
        )


def _by_subject(check: NarrationGate | ProvenanceGate, case: Case) -> dict[Subject, Evidenced]:
    """What the evidence says of each subject; of several texts in a turn, all of it."""
    found: dict[Subject, Evidenced] = {}
    for subject, outcome in check.look(case):
        if isinstance(outcome, Evidenced):
            before = found.get(subject)
            found[subject] = outcome if before is None else _both(before, outcome)
    return found


def _both(one: Evidenced, other: Evidenced) -> Evidenced:
    return Evidenced(
        min(one.value, other.value),
        one.passed and other.passed,
        (*one.findings, *other.findings),
        (*one.evidence, *other.evidence),
    )


def _told(evidence: Evidenced) -> JsonValue:
    """The evidence as a judge is shown it: what was found of each claim or argument, without what is not known."""
    entries = cast("list[dict[str, JsonValue]]", _PLAIN.dump_python(evidence.evidence, mode="json"))
    return [
        {name: value for name, value in entry.items() if value is not None and name not in ("start", "end")}
        for entry in entries
    ]

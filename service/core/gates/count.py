"""How often each tool was called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Literal

from service.core.case import Case, folded
from service.core.checks import WHOLE, Aspect, Check, Seen, Subject
from service.core.expect import limit_of
from service.core.outcome import Finding, Outcome, Scored, Skipped
from service.core.pointers import escaped


class CountGate(Check):
    """The limits of `counts`: the share that holds, or with `mode: strict` 1.0 only if all do.

    Each limit that does not hold is a finding `count`, whose message is UiPath's justification line with the operator shown:
    `Actual: 3, Expected: <= 2, Score: 0.0`. Source: UiPath's tool call count evaluator; a limit of 0 that is kept counts here.
    """

    kind: Literal["count"] = "count"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"counts"})
    mode: Literal["proportional", "strict"] = "proportional"

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for each scope that names limits."""
        seen = [
            (Subject(turn=turn), case.absent(turn) or self._counted(case, path, turn, scope.counts))
            for path, scope, turn in case.scopes
            if scope.counts
        ]
        return seen or [(WHOLE, Skipped("not_applicable", "no number of calls was expected"))]

    def _counted(self, case: Case, path: str, turn: int | None, counts: dict[str, str | int]) -> Outcome:
        fold = folded if case.matching.fold_names else str
        made = Counter(fold(step.call.name) for step in case.steps_of(turn))
        broken = [
            Finding("count", f"{tool}: {justified(made[fold(tool)], count)}", f"{path}/counts/{escaped(tool)}")
            for tool, count in counts.items()
            if not limit_of(count).holds(made[fold(tool)])
        ]
        kept = len(counts) - len(broken)
        value = kept / len(counts) if self.mode == "proportional" else float(not broken)
        return Scored(value, not broken, tuple(sorted(broken, key=lambda finding: finding.path)))


def justified(made: int, count: str | int) -> str:
    """UiPath's line for one tool.

    >>> justified(3, "<=2")
    'Actual: 3, Expected: <= 2, Score: 0.0'
    """
    limit = limit_of(count)
    return f"Actual: {made}, Expected: {limit}, Score: {float(limit.holds(made))}"

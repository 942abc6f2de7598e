"""How often each tool was called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from service.core.case import Case, is_name_pattern, names_tool
from service.core.checks import WHOLE, Aspect, Check, Subject, SubjectOutcome
from service.core.expectations.count_limits import parse_limit
from service.core.json.pointers import escape_token
from service.core.outcome import Finding, Outcome, Scored, Skipped

NO_NUMBER_EXPECTED = Skipped("not_applicable", "no number of calls was expected")


class CountGate(Check):
    """Check the limits of `counts`: the share of them that holds, or with `mode: strict` 1.0 only if all hold.

    A pattern counts all calls of the tools that it matches. Each limit that does not hold is a finding `count`. Its
    message is UiPath's justification line with the operator added:
    `Actual: 3, Expected: <= 2, Score: 0.0`. Source: UiPath's tool call count evaluator; unlike there, a limit of 0 that holds
    counts.
    """

    kind: Literal["count"] = "count"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"counts"})
    idle_outcome: ClassVar[Skipped | None] = NO_NUMBER_EXPECTED
    mode: Literal["proportional", "strict"] = "proportional"

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each scope that names limits."""
        return self.score_limits(case)

    def score_limits(self, case: Case, *, report_kept: bool = False) -> Sequence[SubjectOutcome]:
        """Return the same outcomes; with `report_kept`, a finding `count_kept` has the line of each limit that holds."""
        outcomes: list[SubjectOutcome] = []
        for path, scope, turn in case.scopes:
            if scope.counts:
                absent = case.explain_missing_turn(turn)
                kept = absent or self._score_counts(case, path, turn, scope.counts, report_kept=report_kept)
                outcomes.append((Subject(turn=turn), kept))
        return outcomes or [(WHOLE, NO_NUMBER_EXPECTED)]

    def _score_counts(
        self, case: Case, path: str, turn: int | None, counts: dict[str, str | int], *, report_kept: bool
    ) -> Outcome:
        by_name = Counter(case.make_name_key(step.call.name) for step in case.find_steps(turn))
        patterns = [tool for tool in counts if is_name_pattern(tool)]
        case.meter.spend("comparisons", 4 * len(patterns) * len(by_name))
        made = {tool: by_name[case.make_name_key(tool)] for tool in counts} | {
            tool: sum([n for name, n in by_name.items() if names_tool(case.make_name_key(tool), name)])
            for tool in patterns
        }
        holds = {tool: parse_limit(count).holds(made[tool]) for tool, count in counts.items()}
        passed = all(holds.values())
        lines: list[Finding] = []
        for tool, count in counts.items():
            if not holds[tool] or (report_kept and (passed or self.mode == "proportional")):
                code, line = "count_kept" if holds[tool] else "count", f"{tool}: {explain_count(made[tool], count)}"
                lines.append(Finding(code, line, f"{path}/counts/{escape_token(tool)}"))
        value = sum(holds.values()) / len(counts) if self.mode == "proportional" else float(passed)
        return Scored(value, passed, tuple(sorted(lines, key=lambda finding: finding.path)))


def explain_count(made: int, count: str | int) -> str:
    """Render UiPath's line for one tool.

    >>> explain_count(3, "<=2")
    'Actual: 3, Expected: <= 2, Score: 0.0'
    """
    limit = parse_limit(count)
    return f"Actual: {made}, Expected: {limit}, Score: {float(limit.holds(made))}"

"""Score tau2-bench's action match: was every gold action made?

`service.core.methods.tau_number` compares actions as tau2-bench does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal, cast

from pydantic import JsonValue

from service.core.case import Case, Pair
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.expectations.expectation import CallPattern
from service.core.gates.compat import (
    bind_arguments,
    build_method_score,
    explain_hidden_arguments,
    fit_pattern,
    fits,
    fold_all_or_nothing,
    read_plain_args,
    spend_on_pairs,
)
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.tool_name import score_missing, score_name, settle_pair
from service.core.methods.tau_number import is_same_action
from service.core.outcome import PERFECT, Outcome, build_failure
from service.core.trace import Step

LOOSE = (
    "there one call may stand for several actions, true is 1, and only arguments that the call has are compared, "
    "so that leaving them out is right"
)


class Tau2ActionsGate(Check):
    """Check the calls: 1.0 if every expected call was made with its arguments and no others, else 0.0; extra calls are free.

    Each call stands for one expected call. With `compat` in the rubric, the score is tau2-bench's own number, which reads the
    `compare_args` of an action in gold. Findings: `missing_call`, `wrong_argument`, `missing_argument`, `extra_argument`.
    Source: sierra-research/tau2-bench, the ACTION part of the reward.
    """

    kind: Literal["tau2_actions"] = "tau2_actions"
    has_own_number: ClassVar[bool] = True
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "tools"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        if not case.expected_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        if case.matching.compat:
            return [(WHOLE, self._score_upstream(case))]
        outcomes: list[SubjectOutcome] = [
            (case.subjects[pair.step], settle_pair(case, pair, _score_pair(case, pair)))
            for pair in case.alignment.pairs
        ]
        return fold_all_or_nothing([*outcomes, *[score_missing(case, i) for i in case.alignment.missing]])

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """Return 1.0 if the call has the pattern's arguments, else 0.0."""
        return float(fits(case, pattern, step, extra=pattern.extra_args == "allow"))

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:
        """Whether every argument is compared by equality, with no matcher."""
        return all(bound.critic is None for bound in bind_arguments(case, pattern))

    def _score_upstream(self, case: Case) -> Outcome:
        if hidden := explain_hidden_arguments(case):
            return hidden
        spend_on_pairs(case, each=8)
        gold = [expected_call.options[0] for expected_call in case.expected_calls]
        compare_args = _list_compare_args(case)
        raw = all(
            any(
                step.call.name == pattern.tool
                and is_same_action(
                    step.call.arguments or {},
                    read_plain_args(path, pattern, "tau2-bench"),
                    compare_args[n] if n < len(compare_args) else None,
                )
                for step in case.trace.steps
            )
            for n, (path, pattern) in enumerate(gold)
        )
        return build_method_score(self, case, float(raw), system="tau2-bench", why=LOOSE)


def _score_pair(case: Case, pair: Pair) -> Outcome:
    right_tool = score_name(case, pair)
    if not right_tool.passed:
        return right_tool
    step = case.trace.steps[pair.step]
    fit = fit_pattern(case, pair.pattern, step, extra=pair.pattern.extra_args == "allow")
    return fit.open or (build_failure(0.0, *fit.findings) if fit.findings else PERFECT)


def _list_compare_args(case: Case) -> list[list[str] | None]:
    """List the `compare_args` of each action, if the gold has tau's form."""
    gold = cast("Mapping[str, JsonValue]", (case.expectation.gold if case.expectation else None) or {})
    actions = gold.get("actions") if gold.get("format") == "tau" else None
    return [
        cast("dict[str, list[str] | None]", action).get("compare_args")
        for action in cast("list[JsonValue]", actions or [])
    ]

"""Score tau-bench's reward: is the database as expected, and did the agent say everything it had to say?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal, cast

from pydantic import JsonValue

from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, Part, SubjectOutcome
from service.core.gates.answer import SaidGate
from service.core.gates.compat import build_method_score, fold_all_or_nothing
from service.core.gates.state import StateGate
from service.core.methods.tau_number import is_same_state
from service.core.models.kinds import Several
from service.core.outcome import Errored, Finding, Outcome, Scored, Skipped, decide_without_judge
from service.core.trace import Trace

OTHERWISE = (
    "it compares what Python writes of the states, where 1 is not 1.0; it takes the commas out of what was said but not out of "
    "what had to be, finds it inside of other words, and pays nothing for a run that did not end"
)


class TauRewardGate(Check):
    """Check state and texts: 1.0 if the final state is the expected one and every text of `said` was said, else 0.0.

    A trace without the final state, or without texts where one is expected, is not captured, unless the other part has already
    failed. The same holds for gold actions whose resulting state nobody gives. `not_ended` notes a tau-bench run that neither
    the user's end mark nor an ending call closes; with `compat` in the rubric, such a run earns 0 and outputs are searched as
    tau-bench does. `null_agent` gives what doing nothing would score on the state. Source: sierra-research/tau-bench,
    `Env.calculate_reward`.
    """

    kind: Literal["tau_reward"] = "tau_reward"
    has_own_number: ClassVar[bool] = True
    looks_at: ClassVar[frozenset[Part]] = frozenset({"text"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"said", "state"})
    end_mark: str = "###STOP###"
    """What the simulated user says to end a run."""
    end_tools: Several[str] = ("transfer_to_human_agents",)
    """The tools that end a run when called."""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        parts = [*_score_state(case), *SaidGate().look(case)]
        if not case.matching.compat:
            return [(WHOLE, self._note_end(case.trace, decide_without_judge(fold_all_or_nothing(parts)[0][1])))]
        state = parts[0][1]
        if not isinstance(state, Scored):
            return [(WHOLE, state)]
        raw = float(_has_same_state(case, passed=state.passed) and self._has_ended(case.trace) and _was_said(case))
        return [(WHOLE, build_method_score(self, case, raw, system="tau-bench", why=OTHERWISE))]

    def _note_end(self, trace: Trace, outcome: Outcome) -> Outcome:
        if isinstance(outcome, Skipped | Errored) or self._has_ended(trace):
            return outcome
        finding = Finding("not_ended", "neither the user nor a tool call ended this run", "/messages")
        return Scored(outcome.value, outcome.passed, (*outcome.findings, finding))

    def _has_ended(self, trace: Trace) -> bool:
        """Whether a tau-bench run ended; a trace from elsewhere counts as ended."""
        if trace.format != "tau":
            return True
        has_mark = any(message.role == "user" and self.end_mark in message.text for message in trace.messages)
        return has_mark or any(step.call.name in self.end_tools for step in trace.steps)


def _score_state(case: Case) -> Iterable[SubjectOutcome]:
    says_state = case.expectation is not None and case.expectation.state is not None
    if isinstance(_get_gold(case).get("actions"), list) and not says_state:
        return [(WHOLE, Skipped("not_captured", "the gold has actions, and does not say what state they lead to"))]
    return StateGate(mode="exact").look(case)


def _get_gold(case: Case) -> Mapping[str, JsonValue]:
    """Return the gold if it is tau-bench's, else an empty object."""
    gold = cast("Mapping[str, JsonValue]", (case.expectation.gold if case.expectation else None) or {})
    return gold if gold.get("format") == "tau" else {}


def _has_same_state(case: Case, *, passed: bool) -> bool:
    """Compare whole states as tau-bench does; where parts are ignored, or changes are expected, our own comparison counts."""
    expected = case.expectation.state if case.expectation else None
    if expected is None or case.trace.state is None or expected.changes is not None or expected.ignore or expected.keys:
        return passed
    return is_same_state(case.trace.state.final, expected.final)


def _was_said(case: Case) -> bool:
    """Search the gold's outputs as tau-bench does: each in some message, ignoring case and the message's commas."""
    outputs = _get_gold(case).get("outputs")
    texts = [m.text.lower().replace(",", "") for m in case.trace.messages if m.role == "assistant"]
    expected = [output for output in outputs or () if isinstance(output, str)] if isinstance(outputs, list) else []
    case.meter.spend("characters", len(expected) * sum(map(len, texts)))
    return all(any(output.lower() in text for text in texts) for output in expected)

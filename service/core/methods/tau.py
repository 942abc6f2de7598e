"""Score tau-bench's reward (is the database as expected, and was everything said?) and tau2-bench's match of the gold actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal, cast

from pydantic import JsonValue

from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Part, SubjectOutcome
from service.core.gates import published
from service.core.gates.answer import SaidGate
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.tool_name import score_missing, score_pairs
from service.core.models.kinds import Several
from service.core.outcome import Finding, Outcome, Scored, Skipped, decide_without_judge

OTHERWISE = (
    "it compares what Python writes of the states, where 1 is not 1.0; it takes the commas out of what was said but not out of "
    "what had to be, finds it inside of other words, and pays nothing for a run that did not end"
)
LOOSE = (
    "there one call may stand for several actions, true is 1, and only arguments that the call has are compared, "
    "so that leaving them out is right"
)


class TauRewardGate(published.PublishedCheck):
    """Check state and texts: 1.0 if the final state is the expected one and every text of `said` was said, else 0.0.

    A trace without the final state, or without texts where one is expected, is not captured, unless the other part has already
    failed. The same holds for gold actions without the state that they lead to. `not_ended` notes a tau-bench run that neither
    the user's end mark nor an ending call closes; with `compat` in the rubric, such a run earns 0 and outputs are searched as
    tau-bench does. `null_agent` gives what doing nothing would score on the state. Source: sierra-research/tau-bench,
    `Env.calculate_reward`.
    """

    kind: Literal["tau_reward"] = "tau_reward"
    system: ClassVar[str] = "tau-bench"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"text"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"said", "state"})
    end_mark: str = "###STOP###"
    """What the simulated user says to end a run."""
    end_tools: Several[str] = ("transfer_to_human_agents",)
    """The tools that end a run when called."""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        says_state = case.expectation is not None and case.expectation.state is not None
        state: Outcome = Skipped("not_captured", "the gold has actions, and does not say what state they lead to")
        if says_state or not isinstance(published.read_gold(case, "tau").get("actions"), list):
            state = published.score_state(case, is_same_state)
        if not case.matching.compat:
            folded = published.fold_all_or_nothing([(WHOLE, state), *SaidGate().look(case)])
            outcome = decide_without_judge(folded[0][1])
            if isinstance(outcome, Scored) and not self._has_ended(case):
                finding = Finding("not_ended", "neither the user nor a tool call ended this run", "/messages")
                outcome = Scored(outcome.value, outcome.passed, (*outcome.findings, finding))
            return [(WHOLE, outcome)]
        if not isinstance(state, Scored):
            return [(WHOLE, state)]
        raw = float(state.passed and self._has_ended(case) and _was_said(case))
        return self.give_own_number(case, raw, OTHERWISE)

    def _has_ended(self, case: Case) -> bool:
        """Whether a tau-bench run ended; a trace from elsewhere counts as ended."""
        has_mark = any(one.role == "user" and self.end_mark in one.text for one in case.trace.messages)
        return case.trace.format != "tau" or has_mark or any(s.call.name in self.end_tools for s in case.trace.steps)


def is_same_state(one: JsonValue, other: JsonValue) -> bool:
    """Whether tau-bench's hashes of two states are the same: Python writes the same text for them.

    Objects are written as their sorted pairs and arrays as tuples. So 1 is not 1.0 and true is not 1, an object equals the
    array of its sorted pairs, and a text that is the whole state equals the number it spells.

    >>> is_same_state({"b": 1, "a": [2]}, {"a": [2], "b": 1}), is_same_state({"b": 1}, {"b": 1.0})
    (True, False)
    >>> is_same_state({"b": 1}, [["b", 1]]), is_same_state("1", 1), is_same_state(["1"], [1])
    (True, True, False)
    """
    return str(_freeze(one)) == str(_freeze(other))


def _freeze(value: JsonValue) -> object:
    if isinstance(value, dict):
        return tuple([(key, _freeze(value[key])) for key in sorted(value)])
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


def _was_said(case: Case) -> bool:
    """Search the gold's outputs as tau-bench does: each in some message, ignoring case and the message's commas."""
    outputs = published.read_gold(case, "tau").get("outputs")
    texts = [one.text.lower().replace(",", "") for one in case.trace.messages if one.role == "assistant"]
    expected = [output for output in outputs if isinstance(output, str)] if isinstance(outputs, list) else []
    case.meter.spend("characters", len(expected) * sum(map(len, texts)))
    return all(any(output.lower() in text for text in texts) for output in expected)


class Tau2ActionsGate(published.FittingCheck):
    """Check the calls: 1.0 if every expected call was made with its arguments and no others, else 0.0; extra calls are free.

    Each call stands for one expected call. With `compat` in the rubric, the score is tau2-bench's own number, which reads the
    `compare_args` of an action in gold. Findings: `missing_call`, `wrong_argument`, `missing_argument`, `extra_argument`.
    Source: sierra-research/tau2-bench, the ACTION part of the reward.
    """

    kind: Literal["tau2_actions"] = "tau2_actions"
    system: ClassVar[str] = "tau2-bench"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "tools"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        if not case.expected_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        if not case.matching.compat:
            outcomes = score_pairs(case, lambda pair: self.score_fit(case, pair))
            return published.fold_all_or_nothing([*outcomes, *[score_missing(case, n) for n in case.alignment.missing]])
        if hidden := published.explain_hidden_arguments(case):
            return [(WHOLE, hidden)]
        published.spend_on_pairs(case, each=8)
        actions = cast("list[dict[str, list[str] | None]]", published.read_gold(case, "tau").get("actions") or [])
        compared = [action.get("compare_args") for action in actions] + [None] * len(case.expected_calls)
        expected = self.list_plain_calls(case)
        raw = all(_was_made(case, *call, names) for call, names in zip(expected, compared, strict=False))
        return self.give_own_number(case, float(raw), LOOSE)


def _was_made(case: Case, tool: str, gold: Mapping[str, JsonValue], compared: list[str] | None) -> bool:
    """Whether tau2-bench finds a gold action among the calls: if it names no arguments to compare, those of the call are."""
    for step in case.trace.steps:
        made = step.call.arguments or {}
        names = made if compared is None else compared
        sides = [{name: side[name] for name in names if name in side} for side in (made, gold)]
        if step.call.name == tool and sides[0] == sides[1]:
            return True
    return False

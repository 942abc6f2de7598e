"""Check how the model dealt with errors that its tools reported."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.case import Case, build_call_path
from service.core.checks import WHOLE, Aggregate, Check, Part, SubjectOutcome
from service.core.grounding.actions import admits_failure, find_completion, find_own_actions
from service.core.json.values import Contents
from service.core.outcome import PERFECT, Errored, Finding, OpenValue, Outcome, PartialOutcome, Skipped, build_failure
from service.core.trace import Step

CHANGE_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint")
"""The MCP annotations that say what a call does to the world."""


class RecoveryGate(Check):
    """Check each call whose tool reported an error, and each repeated write: 1.0 where the model handled it, else 0.0.

    `unresolved_error`: no later call of that tool succeeded, and no text follows. If a text follows, a judge decides whether
    it admits the failure (`suspected_unresolved_error`, and `claimed_success_after_error` where it seems to claim
    completion). The judge is not asked if the text admits the failure in words that code knows and the call was not expected,
    because nothing is suspected then.

    `blind_retry`: the same call was made again unchanged, with nothing in between that could have changed anything (another
    call that succeeded, is not marked read-only and is not unexpected, or a message from the user), and no such retry succeeded.

    `repeated_write`: the same call of a tool that its MCP annotations mark as neither read-only nor idempotent succeeded more
    often than expected.
    """

    kind: Literal["recovery"] = "recovery"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"call", "result", "text"})

    default_aggregate: ClassVar[Aggregate] = "min"

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each failed call and for each repeated write."""
        steps = case.trace.steps
        returned = [step for step in steps if step.result is not None]
        failed = [step for step in returned if step.failed]
        outcomes: list[SubjectOutcome] = []
        writes = [step.call.name for step in returned if _is_write(case, step)]
        if failed or len(set(writes)) < len(writes):
            history = _CallHistory(case)
            outcomes += [(case.subjects[step.index], _score_failure(case, history, step)) for step in failed]
            for step in _find_repeated_writes(case, history):
                message = f"{step.call.name} had succeeded with the same arguments, and is not idempotent"
                finding = Finding("repeated_write", message, build_call_path(step))
                outcomes.append((case.subjects[step.index], build_failure(0.0, finding)))
        state = case.trace.state
        if state is not None and state.fault is not None and any(step.result is None for step in steps):
            outcomes.append((WHOLE, Errored("sandbox", state.fault)))  # a call without a result may have failed
        return outcomes or [(WHOLE, NOTHING_FAILED)]


NOTHING_FAILED = Skipped("not_applicable", "no call failed and no write was repeated")


class _CallHistory:
    """An index of a trace's calls and texts, built once, that answers what happened after a step."""

    def __init__(self, case: Case) -> None:
        self._contents = Contents()
        self.groups: defaultdict[Hashable, list[Step]] = defaultdict(list)
        """The steps that make the same call (tool and arguments)."""
        self._last_success: dict[Hashable, int] = {}
        """Tool, and the same call -> the last step that succeeded; (tool, None) -> the last that no expected call claims."""
        self.expected = _find_expected_steps(case)
        unwanted = case.chargeable_steps - self.expected if case.lists_calls else frozenset[int]()
        self.last_unknown: dict[str, int] = {}
        """Tool -> its last step whose result is not captured."""
        self._last_unfailed_of_same: dict[Hashable, int] = {}
        self._changes: list[int] = []
        """The steps that may have changed something; an unwanted call excuses nothing."""
        for step in case.trace.steps:
            if step.call.arguments is not None:
                self.groups[self._make_key(step)].append(step)
                if not step.failed:
                    self._last_unfailed_of_same[self._make_key(step)] = step.index
            if step.succeeded:
                self._last_success[step.call.name] = self._last_success[self._make_key(step)] = step.index
                if step.index not in self.expected:
                    self._last_success[step.call.name, None] = step.index
            elif step.result is None:
                self.last_unknown[step.call.name] = step.index
            tool = case.find_tool(step)
            if step.succeeded and step.index not in unwanted and not (tool is not None and tool.read_only):
                self._changes.append(step.index)
        messages = case.trace.messages
        self.text_messages = [n for n, one in enumerate(messages) if one.role == "assistant" and one.text.strip()]
        self._turn_ends = {message.turn: n + 1 for n, message in enumerate(messages)}
        self.last_admission = max([n for n in self.text_messages if admits_failure(messages[n].text)], default=-1)

    def _make_key(self, step: Step) -> Hashable:
        return step.call.name, self._contents.number(step.call.arguments)

    def has_recovered(self, step: Step) -> bool:
        """Whether a later call of the tool succeeded, which is not another call that was expected beside this one."""
        name = step.call.name
        keys = [name] if step.index not in self.expected else [(name, None), self._make_key(step)]
        return any(self._last_success.get(key, -1) > step.index for key in keys)

    def find_blind_retry(self, step: Step) -> Step | None:
        """Return the next step that makes the same call in the turn, if nothing changed in between and no retry succeeded."""
        same = self.groups[self._make_key(step)] if step.call.arguments is not None else []
        later = same[bisect_right(same, step.index, key=lambda other: other.index) :]
        if not later or later[0].turn != step.turn:
            return None
        change = bisect_right(self._changes, step.index)
        if change < len(self._changes) and self._changes[change] < later[0].index:
            return None
        return later[0] if self._last_unfailed_of_same.get(self._make_key(step), -1) < later[0].index else None

    def find_text_after(self, step: Step) -> int | None:
        """Return the message with the model's last text in the step's turn, after it, else with its next text; None: no text."""
        after = bisect_right(self.text_messages, step.message)
        own = bisect_left(self.text_messages, self._turn_ends.get(step.turn, 0)) - 1
        return self.text_messages[max(after, own)] if after < len(self.text_messages) else None


def _score_failure(case: Case, history: _CallHistory, step: Step) -> Outcome | PartialOutcome:
    retry = history.find_blind_retry(step)
    if retry is not None:
        message = f"{step.call.name} was called again unchanged and failed again"
        return build_failure(0.0, Finding("blind_retry", message, build_call_path(retry)))
    if history.has_recovered(step):
        return PERFECT
    if history.last_unknown.get(step.call.name, -1) > step.index:
        return RETRY_UNKNOWN
    text = history.find_text_after(step)
    if text is None:
        note = f"{step.call.name} failed, no retry of it succeeded, and no text follows"
        return build_failure(0.0, Finding("unresolved_error", note, f"/steps/{step.index}/result"))
    if history.last_admission > step.message and not _claims_done(case, step, text):
        return FAILURE_ADMITTED
    return _leave_to_judge(case, step, text)


RETRY_UNKNOWN = Skipped("not_captured", "the trace does not say what a later call of that tool returned", open=True)
FAILURE_ADMITTED = Skipped("not_applicable", "a text seems to admit the failure, and nothing speaks against it")
ADMISSION_WORDS = (
    "The text (`text`), which follows a call that failed, tells that it failed, or what its error says, or that what was"
    " wanted is not done; and it claims nothing that the call would have done."
)
"""The statement that a judge holds against such a text."""


def _leave_to_judge(case: Case, step: Step, at: int) -> PartialOutcome:
    """Leave the failure open: code cannot read what a text says about it."""
    text, path = case.trace.messages[at].text, f"/messages/{at}/text"
    note = f"{step.call.name} failed and no retry of it succeeded; a judge must check what the answer says about it"
    findings = [Finding("suspected_unresolved_error", note, f"/steps/{step.index}/result")]
    if not admits_failure(text) and find_completion(text) is not None:
        findings.append(Finding("claimed_success_after_error", "the text seems to claim completion", path))
    error = step.result.content if step.result is not None else None
    shown: dict[str, JsonValue] = {"tool": step.call.name, "error": error, "text": text}
    return PartialOutcome((OpenValue(ADMISSION_WORDS, shown, path),), findings=tuple(findings))


def _claims_done(case: Case, step: Step, at: int) -> bool:
    """Whether the text says that what the failed call would have done is done."""
    steps = [one for one in case.trace.steps if one.message < at]
    told = find_own_actions(case.trace.messages[at].text, case.trace.tools or (), steps)
    return any(step.call.name in action.tools and action.state == "failed" for action in told)


def _find_expected_steps(case: Case) -> frozenset[int]:
    """Find the steps that stand for expected calls of their tool; one in the place of another tool is not expected."""
    steps, pairs = case.trace.steps, case.alignment.pairs if case.expected_calls else ()
    return frozenset([one.step for one in pairs if case.is_same_name(one.pattern.tool, steps[one.step].call.name)])


def _find_repeated_writes(case: Case, history: _CallHistory) -> Iterator[Step]:
    """Yield the repeats among writes that are the same and succeeded: those beyond the first, or beyond the expected number."""
    for same in history.groups.values():
        sure = [step for step in same if step.succeeded and step.result is not None and step.result.failure is None]
        group = [step for step in sure if _is_write(case, step)]
        yield from group[max(1, sum([step.index in history.expected for step in group])) :]


def _is_write(case: Case, step: Step) -> bool:
    tool = case.find_tool(step)
    if tool is None or not any(hint in tool.annotations for hint in CHANGE_HINTS):
        return False
    return not tool.read_only and tool.annotations.get("idempotentHint") is not True

"""Proof and suspicion: the assistant says that it did what no call did, or what every call failed to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from service.core.grounding.action_words import SELF_MADE, list_verb_forms
from service.core.grounding.actions import OwnAction, admits_failure, find_completion, has_changed_something
from service.core.grounding.fact_index import FactIndex
from service.core.grounding.findings import TextFinding
from service.core.grounding.ground import Placed
from service.core.trace import Step, ToolDef

CODE = "claimed_action_not_taken"
SUSPECTED = "suspected_action_not_taken"
AFTER_ERROR = "claimed_success_after_error"


def find_false_actions(
    text: str,
    placed: Sequence[Placed],
    actions: Sequence[OwnAction],
    steps: Sequence[Step],
    tools: Mapping[str, ToolDef],
    index: FactIndex,
) -> Iterator[TextFinding]:
    """Yield a finding for each action that a text claims and no call before it took.

    Proved, in the first person alone: every call that would have done it failed, and the sentence names a value that one of them
    passed; or verb and object name a tool on offer, the sentence names a value that stands in the trace, and no call has changed
    anything. Suspected: any other statement of a thing done where no call of such a tool succeeded; where it does not say who did
    it, only if no result tells of it either.
    """
    changed = has_changed_something(steps, tools)
    for action in actions:
        if action.state == "failed" and admits_failure(text):
            continue
        if action.state not in ("never_called", "failed") or (
            action.state == "never_called" and not action.tools and changed
        ):
            continue
        told = any(list_verb_forms(one) & index.list_words(of_results=True) for one in action.actions)
        if action.own or not told or action.state == "failed":
            proved = action.own and not changed and not action.actions & SELF_MADE and _binds_value(action, placed)
            missing = (
                f"every call of {action.tools[0]} failed" if action.state == "failed" else "no call before it did that"
            )
            note = f"the text says {action.text!r}, and {missing}"
            yield TextFinding(CODE if proved else SUSPECTED, note, action.start, action.end, proved)


def _binds_value(action: OwnAction, placed: Sequence[Placed]) -> bool:
    """Whether a value in the sentence binds it to a call that failed or, with its object, to a tool that was not called."""
    inside = [one for one in placed if action.end <= one.mention.start < action.last and one.mention.kind != "weekday"]
    sources = [source for one in inside if one.grounded.origin in ("found", "given") for source in one.grounded.sources]
    if action.state == "failed":
        arguments = tuple([f"/steps/{step.index}/call/arguments/" for step in action.steps])
        return any(source.startswith(arguments) for source in sources)
    return action.named and bool(sources)


def find_completion_after_error(text: str, steps: Sequence[Step]) -> Iterator[TextFinding]:
    """Yield the suspicion that a text claims completion after what is likely an error, where no later call of the tool worked."""
    likely: dict[str, Step] = {}
    for step in steps:
        if step.result is not None and not step.result.is_error:
            likely.pop(step.call.name, None)
            if step.result.failure is not None:
                likely[step.call.name] = step
    done = find_completion(text) if likely and not admits_failure(text) else None
    for name, step in sorted(likely.items()) if done is not None else ():
        failure = step.result.failure if step.result is not None else None
        if failure is not None and done is not None:
            note = f"{name} seems to have failed ({failure.reason}), and the text claims completion"
            yield TextFinding(AFTER_ERROR, note, *done.span(), proved=False, source=failure.path)

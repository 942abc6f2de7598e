"""Calls that a sandbox executes for the caller: build its request, add its reply to the trace, score only what succeeded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from pydantic import BaseModel, ConfigDict, JsonValue, SkipValidation, ValidationError

from service.core.case import Case
from service.core.conclusion.conclude import conclude
from service.core.gates.schema import SchemaGate
from service.core.models.light import light
from service.core.models.validation import list_problems
from service.core.outcome import Scored
from service.core.plan import Plan, plan
from service.core.report import ExecutedScore, Report
from service.core.rubric import Rubric
from service.core.trace import State, Step, ToolResult, Trace
from service.errors import SandboxError


class SandboxResult(BaseModel):
    """The result of one call. Unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, strict=True)

    id: str
    content: SkipValidation[JsonValue]
    is_error: bool = False


class SandboxReply(BaseModel):
    """A sandbox's reply: a result for each call it was sent, in any order, and the state after the last one."""

    model_config = ConfigDict(frozen=True, strict=True)

    results: list[SandboxResult]
    final: SkipValidation[JsonValue]


@light
class SandboxState(State):
    """The final state from a sandbox. `skipped_steps` are the steps it was not sent and that have no result."""

    skipped_steps: frozenset[int] = frozenset()


def needs_execution(trace: Trace) -> bool:
    """Whether the trace lacks the final state that a sandbox would supply."""
    return trace.state is None or "final" not in trace.state.captured


def list_runnable_steps(trace: Trace, rubric: Rubric, *, invalid: bool = False) -> tuple[Step, ...]:
    """Return the calls to run: those that pass the rubric's schema gate, or the default gate if it has none.

    `invalid` includes those that fail it. A call whose arguments are unknown or not an object can never be run.
    """
    steps = [step for step in trace.steps if step.call.arguments is not None]
    if invalid or not steps:
        return tuple(steps)
    checks = [*[criterion.check for criterion in rubric.compiled_criteria], SchemaGate()]
    gate = next(check for check in checks if isinstance(check, SchemaGate))
    seen = gate.look(Case(trace, None, rubric.matching))
    bad = {subject.step for subject, outcome in seen if isinstance(outcome, Scored) and not outcome.passed}
    return tuple([step for step in steps if step.index not in bad])


def build_sandbox_request(trace: Trace, steps: Iterable[Step]) -> dict[str, JsonValue]:
    """Build the request to the sandbox: `{"initial": state | null, "calls": [{"id", "name", "arguments"}]}`.

    The ids are our own: a model's may be missing or repeated.
    """
    calls = [
        {"id": _build_id(one), "name": one.call.name, "arguments": dict(one.call.arguments or {})} for one in steps
    ]
    return {"initial": trace.state.initial if trace.state else None, "calls": cast("JsonValue", calls)}


def _build_id(step: Step) -> str:
    return f"step_{step.index}"


def add_execution(trace: Trace, steps: Iterable[Step], given: JsonValue) -> Trace:
    """Add the reply's final state to the trace, and its results to steps without one.

    Raises SandboxError for a reply of another shape, or one that does not answer exactly the calls sent.
    """
    try:
        reply = SandboxReply.model_validate(given)
    except ValidationError as error:
        raise SandboxError(f"the reply does not fit: {list_problems(error, given)[0]}") from None
    results = {one.id: ToolResult(one.content, one.is_error) for one in reply.results}
    if len(results) < len(reply.results):
        raise SandboxError("the reply has two results for one call")
    if results.keys() != {_build_id(step) for step in steps}:
        raise SandboxError("the reply does not have one result for each call it was sent")
    done = tuple([replace(step, result=step.result or results.get(_build_id(step))) for step in trace.steps])
    skipped_steps = frozenset([step.index for step in done if step.result is None])
    state = trace.state or State()
    final = SandboxState(state.initial, reply.final, state.captured | {"final"}, skipped_steps=skipped_steps)
    return replace(trace, steps=done, state=final)


def mark_unexecuted(trace: Trace, reason: str) -> Trace:
    """Record in the trace why there is no final state: checks that need one are Errored, the others stand."""
    return replace(trace, state=replace(trace.state or State(), fault=reason))


def add_executed_score(report: Report, attempted: Plan) -> Report:
    """Add the score of the successful calls alone, if any call failed or was not made; else return the report unchanged.

    Judges are off: without the failed calls their questions would be different ones.
    """
    trace = attempted.trace
    skipped_steps = trace.state.skipped_steps if isinstance(trace.state, SandboxState) else frozenset[int]()
    failed = [step.index for step in trace.steps if step.failed]
    if not skipped_steps and not failed:
        return report
    steps = [step for step in trace.steps if step.index not in skipped_steps and step.index not in set(failed)]
    kept = tuple([replace(step, index=index) for index, step in enumerate(steps)])
    other = conclude(plan(replace(trace, steps=kept), attempted.rubric, attempted.expectation), mode="off")
    return replace(report, executed=ExecutedScore(other.verdict, other.score, other.coverage, len(kept)))

"""How the model dealt with errors that its tools reported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from service.core.case import Case, call_path
from service.core.checks import WHOLE, Aggregate, Check, Seen
from service.core.outcome import PERFECT, Finding, Outcome, Skipped, failed
from service.core.trace import Step
from service.core.values import equal

TRANSIENT = frozenset({408, 409, 425, 429})
STATUS = ("status", "status_code", "statusCode", "code")
ADMITS = re.compile(
    r"\b(fail\w*|error\w*|unable|could ?n[o']t|can ?n[o']t|cannot|did ?n[o']t|unsuccessful\w*|went wrong|ran into)\b",
    re.IGNORECASE,
)
CLAIMS = re.compile(
    r"\b(done|complete[ds]?|success\w*|booked|sent|refunded|cancell?ed|updated|created|scheduled|confirmed|processed)\b",
    re.IGNORECASE,
)


class RecoveryGate(Check):
    """Each call whose tool reported an error, and each write made twice: 1.0 where it was dealt with, else 0.0.

    `unresolved_error`: no later call of that tool succeeded, and the answer does not admit the failure (where the call was
    expected, admitting is not enough). `claimed_success_after_error`: the answer even claims completion, by its words.
    `blind_retry`: the same call was made again unchanged and failed again, or was made again although the error says that
    the request itself is at fault (HTTP 4xx other than 408, 409, 425, 429). `repeated_write`: the same call of a tool that
    its MCP annotations mark as neither read-only nor idempotent succeeded twice, unexpectedly.
    """

    kind: Literal["recovery"] = "recovery"

    by_default: ClassVar[Aggregate] = "min"

    def look(self, case: Case) -> Iterable[Seen]:
        """One outcome for each failed call and for each repeated write."""
        steps = case.trace.steps
        seen: list[Seen] = [(case.subjects[step.index], _dealt_with(case, step)) for step in steps if _failed(step)]
        seen += [(case.subjects[step.index], _repeated(step)) for step in steps if _is_repeated_write(case, step)]
        return seen or [(WHOLE, Skipped("not_applicable", "no call failed and no write was repeated"))]


def _failed(step: Step) -> bool:
    return step.result is not None and step.result.is_error


def _succeeded(step: Step) -> bool:
    return step.result is not None and not step.result.is_error


def _same_call(one: Step, other: Step) -> bool:
    a, b = one.call, other.call
    return (
        a.name == b.name
        and a.arguments is not None
        and b.arguments is not None
        and equal(dict(a.arguments), dict(b.arguments))
    )


def _dealt_with(case: Case, step: Step) -> Outcome:
    later = case.trace.steps[step.index + 1 :]
    findings = [*_blind_retry(step, later), *_unresolved(case, step, later)]
    return failed(0.0, *findings) if findings else PERFECT


def _blind_retry(step: Step, later: Sequence[Step]) -> Iterable[Finding]:
    again = next((other for other in later if _same_call(step, other)), None)
    if again is None or not (_failed(again) or _is_callers_fault(step)):
        return
    why = "and failed again" if _failed(again) else "although the error says the request is at fault"
    yield Finding("blind_retry", f"{step.call.name} was called again unchanged {why}", call_path(again))


def _is_callers_fault(step: Step) -> bool:
    content = step.result.content if step.result else None
    given = [content.get(key) for key in STATUS] if isinstance(content, dict) else []
    return any(isinstance(code, int) and 400 <= code < 500 and code not in TRANSIENT for code in given)


def _unresolved(case: Case, step: Step, later: Sequence[Step]) -> Iterable[Finding]:
    if any(other.call.name == step.call.name and _succeeded(other) for other in later):
        return
    path, answer = f"/steps/{step.index}/result", case.trace.answer or ""
    admitted = bool(ADMITS.search(answer))
    if admitted and not _is_needed(case, step):
        return
    yield Finding("unresolved_error", f"{step.call.name} failed and no later call of it succeeded", path)
    if not admitted and CLAIMS.search(answer):
        yield Finding(
            "claimed_success_after_error", "the answer claims completion, and says nothing of the error", "/answer"
        )


def _is_needed(case: Case, step: Step) -> bool:
    required = [pattern for wanted in case.wanted if wanted.required for _, pattern in wanted.options]
    return any(case.same_name(pattern.tool, step.call.name) for pattern in required)


def _is_repeated_write(case: Case, step: Step) -> bool:
    tool = case.catalogue.get(step.call.name)
    if tool is None or not tool.annotations or tool.read_only or tool.annotations.get("idempotentHint") is True:
        return False
    if not _succeeded(step) or step.index in _expected_steps(case):
        return False
    return any(_succeeded(other) and _same_call(other, step) for other in case.trace.steps[: step.index])


def _expected_steps(case: Case) -> set[int]:
    return {pair.step for pair in case.alignment.pairs} if case.wanted else set()


def _repeated(step: Step) -> Outcome:
    message = f"{step.call.name} had succeeded with the same arguments, and is not idempotent"
    return failed(0.0, Finding("repeated_write", message, call_path(step)))

"""Ground every text of a trace that follows a call: the origin of each value, what is proved against it, what is suspected."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from service.core.grounding.actions import find_own_actions
from service.core.grounding.derive import Deriver
from service.core.grounding.findings import (
    TextFinding,
    find_completion_after_error,
    find_false_actions,
    find_other_values,
    find_scale_slips,
    find_slips,
)
from service.core.grounding.ground import Placed, ground_text
from service.core.grounding.history import History
from service.core.grounding.origins import Grounded
from service.core.grounding.reading.values import MAX_TEXT_CHARS
from service.core.grounding.store import MAX_FACTS
from service.core.json.walk import list_leaves
from service.core.results.structure import has_media, read_text
from service.core.trace import Step

MAX_MENTIONS_OF_ALL = 10_000
"""Once a trace's texts have had more values than this looked up, the remaining texts are not looked at."""
_MAX_LEAVES = 1_000


class GroundedText(NamedTuple):
    """One assistant text that follows a call. `too_long` says why it was not read, or is ""."""

    message: int
    turn: int
    values: tuple[Grounded, ...] = ()
    findings: tuple[TextFinding, ...] = ()
    too_long: str = ""
    unread: str = ""
    """The pointer of an earlier result that code could not read, or ""."""
    missing: str = ""
    """The pointer of an earlier result that is missing from the trace, or ""."""


def ground_texts(history: History) -> list[GroundedText]:
    """Ground every assistant text that comes after a call or tells of an own deed, in order."""
    trace = history.trace
    deriver = Deriver()
    waiting, steps, found = [*reversed(trace.steps)], list[Step](), list[GroundedText]()
    unread = missing = ""
    looked_up = 0
    for n, message in enumerate(trace.messages):
        while waiting and waiting[-1].message < n:
            steps.append(step := waiting.pop())
            missing = missing or ("" if step.result is not None else f"/steps/{step.index}/result")
            unread = unread or ("" if _is_readable(step, history) else f"/steps/{step.index}/result/content")
        text, pointer = message.text, f"/messages/{n}/text"
        actions = find_own_actions(text, trace.tools or (), steps) if message.role == "assistant" and text else []
        if message.role != "assistant" or not text or not (steps or actions):
            continue
        known = history.know(n)
        limits = (
            (known.full, f"the trace holds {MAX_FACTS} values or more before the text"),
            (len(text) > MAX_TEXT_CHARS, f"the text is longer than {MAX_TEXT_CHARS} characters"),
            (looked_up > MAX_MENTIONS_OF_ALL, f"more than {MAX_MENTIONS_OF_ALL} values stand in the texts before"),
        )
        if too_long := next((why for passed, why in limits if passed), ""):
            found.append(GroundedText(n, message.turn, too_long=too_long))
            continue
        placed = ground_text(text, pointer, known, deriver.move(known), history.mentions[n])
        looked_up += len(placed)
        findings = [
            *find_false_actions(text, placed, actions, steps, history.tools, known),
            *find_other_values(text, placed, actions, known),
            *find_completion_after_error(text, steps),
        ]
        if not unread and not missing:
            findings += [*find_scale_slips(text, placed, known), *find_slips(placed, known)]
        kept = _keep_first(findings)
        values = tuple([_mark(one, kept) for one in placed])
        empty = _find_empty(steps) if any(value.origin == "nowhere" for value in values) else ""
        found.append(GroundedText(n, message.turn, values, kept, unread=unread or empty, missing=missing))
    return found


def _is_readable(step: Step, history: History) -> bool:
    """Whether code can read what a step returned, if anything: it is no picture, and no JSON that breaks off."""
    if step.result is None or step.result.is_error:
        return True
    rests = [read_text(body.text).beside_exact.strip() for body in history.list_bodies(step)]
    return not has_media(step.result.content) and not any(rest[:1] in ("{", "[") and rest[1:] for rest in rests)


def _find_empty(steps: Sequence[Step]) -> str:
    """Return the pointer of the first result where all are empty; else ""."""
    returned = [(step.index, step.result.content) for step in steps if step.result is not None]
    leaves = [leaf.value for _, content in returned for leaf in list_leaves(content, limit=_MAX_LEAVES)]
    if any(re.search(r"[^\W_]", value) if isinstance(value, str) else value is not None for value in leaves):
        return ""
    return next((f"/steps/{n}/result/content" for n, _ in returned), "")


def _keep_first(findings: Sequence[TextFinding]) -> tuple[TextFinding, ...]:
    """Keep one finding for each place: a proof before a suspicion."""
    found: dict[tuple[int, int], TextFinding] = {}
    for finding in sorted(findings, key=lambda one: (not one.proved, one.start)):
        found.setdefault((finding.start, finding.end), finding)
    return tuple(sorted(found.values(), key=lambda one: one.start))


def _mark(one: Placed, findings: Sequence[TextFinding]) -> Grounded:
    """Say of a value that code speaks against it; of one without a source, what does."""
    for finding in findings:
        if finding.start <= one.mention.start and one.mention.end <= finding.end:
            sources = one.grounded.sources or ((finding.source,) if finding.source else ())
            return replace(one.grounded, code=finding.code, sources=sources)
    return one.grounded

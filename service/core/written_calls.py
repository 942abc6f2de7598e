"""Calls that a model wrote into its text: read as calls, or failed, where a rubric says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.core.checks import Subject
from service.core.outcome import Finding, Scored
from service.core.trace import Offer, Step, ToolCall, Trace, UnreadablePart

CALL_IN_TEXT = "call_in_text"
"""The finding code of a call that stands in a text."""


def fail_written_calls(trace: Trace) -> list[tuple[Subject, Scored]]:
    """Return an outcome of 0 for each turn with calls in texts, with what was found."""
    by_turn: dict[int, list[Finding]] = {}
    for part in trace.unread:
        if part.written is not None:
            by_turn.setdefault(part.turn, []).append(Finding(CALL_IN_TEXT, _describe(part), part.path))
    return [(Subject(turn=turn), Scored(0.0, False, tuple(found))) for turn, found in by_turn.items()]


def _describe(part: UnreadablePart) -> str:
    name = part.written.name if part.written else ""
    return f"the model wrote a call{f' of {name!r}' if name else ''} into its text instead of making it"


def read_written_calls(trace: Trace) -> Trace:
    """Return the trace with those of its calls in texts that are certain as steps without results; the others stay unread."""
    read = [part for part in trace.unread if part.written is not None and part.written.whole]
    if not read:
        return trace
    made = {id(part): _build_step(trace, part) for part in read}
    steps = sorted([*trace.steps, *made.values()], key=lambda step: step.message)
    places = {id(step): index for index, step in enumerate(steps)}
    moved = [places[id(step)] for step in trace.steps]
    unread = [
        part if part.step is None else replace(part, step=moved[part.step])
        for part in trace.unread
        if id(part) not in made
    ]
    last = len(trace.messages) - 1
    return replace(
        trace,
        steps=tuple([replace(step, index=index) for index, step in enumerate(steps)]),
        unread=tuple(unread),
        answer=None if any(step.message == last for step in steps) else trace.answer,
        offers=_move_offers(trace.offers, moved, len(steps)),
        catalogues={
            agent: one._replace(offers=_move_offers(one.offers, moved, len(steps)))
            for agent, one in trace.catalogues.items()
        },
    )


def _build_step(trace: Trace, part: UnreadablePart) -> Step:
    written = part.written
    assert written is not None  # noqa: S101 (the caller has looked)
    message = trace.messages[written.message]
    call = ToolCall(None, written.name, written.arguments, dict(written.arguments or {}))
    return Step(0, message.turn, call, None, written.message, None, message.agent)


def _move_offers(offers: Mapping[str, Offer], moved: Sequence[int], count: int) -> dict[str, Offer]:
    """Return the offers with the steps before which they came, as numbered now."""
    return {
        name: offer._replace(step=moved[offer.step] if offer.step < len(moved) else count)
        for name, offer in offers.items()
    }

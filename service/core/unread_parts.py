"""Open the outcomes that depend on parts of a trace that could not be read; fail or read calls in texts, as a rubric says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple, TypeVar

from service.core.checks import Part, Subject
from service.core.outcome import Finding, Scored, Skipped
from service.core.trace import Offer, Step, ToolCall, Trace, UnreadablePart

T = TypeVar("T")

UNREAD_RESULT = "unread_result"
"""The finding code for a result whose fields could not be read."""


def build_unread_result(path: str) -> Skipped:
    """Build the outcome of a check that needs fields of the result at this pointer, which has a form without fields."""
    reason = "the result is text or media, and no JSON in which its fields could be looked up"
    return Skipped("unread", reason, (Finding(UNREAD_RESULT, reason, path),))


def build_missing_result(path: str) -> Skipped:
    """Build the outcome of a text that follows a call whose result, at this pointer, was not captured."""
    reason = "a text follows a call, and the trace does not tell what that call returned"
    return Skipped("not_captured", reason, (Finding("missing_result", reason, path),), open=True)


class CheckReach(NamedTuple):
    """The parts of a trace that a check looks at, and whether it compares them with an expectation."""

    parts: frozenset[Part]
    expects: bool
    lists_calls: bool = False
    """Whether it checks which calls are right against an expectation that lists them, so that an unread call matters."""


def open_unread_outcomes(
    reach: CheckReach, outcomes: Sequence[tuple[Subject, T | Skipped]], unread: Iterable[UnreadablePart]
) -> Sequence[tuple[Subject, T | Skipped]]:
    """Open the outcomes of a check that depend on a part that could not be read.

    An unread call is one more step with an open outcome. It also opens outcomes about its turn or the whole trace (missing calls,
    extra calls, their order), as it may explain them. An unread result opens the outcomes of its step and of later steps. An
    outcome that does not apply, whatever was called, stays as it is.
    """
    parts = [part for part in unread if part.kind in reach.parts]
    calls = [(Subject(turn=part.turn), _build_unread(part)) for part in parts if part.kind == "call"]
    if reach.expects and all(_is_free(outcome) for _, outcome in outcomes):
        return [*outcomes, *calls] if reach.lists_calls else outcomes
    lost, opened = _index_parts(reach, parts), list[tuple[Subject, T | Skipped]]()
    for subject, outcome in outcomes:
        part = None if reach.expects and _is_free(outcome) else lost.find(subject)
        opened.append((subject, outcome if part is None else _build_unread(part)))
    return [*opened, *calls]


def _build_unread(part: UnreadablePart) -> Skipped:
    code = f"unread_{part.kind}" if part.written is None else CALL_IN_TEXT
    return Skipped("unread", part.reason, (Finding(code, part.reason, part.path),))


def _is_free(outcome: object) -> bool:
    return isinstance(outcome, Skipped) and outcome.cause == "not_applicable"


class _LostParts(NamedTuple):
    """The first unread parts that open outcomes about a step, a turn, or the trace."""

    any: UnreadablePart | None
    of_step: UnreadablePart | None
    """The part of the earliest step: it affects that step and all later ones."""
    of_later_steps: UnreadablePart | None
    """The part without a step of the earliest turn, if the check reads results: it affects the steps of later turns."""
    of_later_turns: UnreadablePart | None
    """The part of the earliest turn that affects all turns from then on."""
    of_turns: Mapping[int, UnreadablePart]
    """The parts that affect only their own turn."""

    def find(self, subject: Subject) -> UnreadablePart | None:
        """Return an unread part that outcomes about this subject depend on, or None."""
        if subject.step is not None:
            if self.of_step is not None and subject.step >= (self.of_step.step or 0):
                return self.of_step
            return _take_from(self.of_later_steps, subject.turn)
        if subject.turn is None:
            return self.any
        return _take_from(self.of_later_turns, subject.turn) or self.of_turns.get(subject.turn)


def _take_from(part: UnreadablePart | None, turn: int | None) -> UnreadablePart | None:
    return part if part is not None and turn is not None and turn >= part.turn else None


def _index_parts(reach: CheckReach, parts: Sequence[UnreadablePart]) -> _LostParts:
    reads_results = "result" in reach.parts
    lasting = [part for part in parts if reads_results and part.kind != "text"]
    placeless = [part for part in parts if reads_results and part.step is None]
    by_turn: Callable[[UnreadablePart], int] = attrgetter("turn")
    return _LostParts(
        any=parts[0] if parts else None,
        of_step=min([part for part in parts if part.step is not None], key=lambda part: part.step or 0, default=None),
        of_later_steps=min(placeless, key=by_turn, default=None),
        of_later_turns=min(lasting, key=by_turn, default=None),
        of_turns={part.turn: part for part in reversed(parts) if not (reads_results and part.kind != "text")},
    )


CALL_IN_TEXT = "call_in_text"
"""The finding code of a call that stands in a text."""


def fail_written_calls(trace: Trace) -> list[tuple[Subject, Scored]]:
    """Return an outcome of 0 for each turn with calls in texts, with what was found."""
    by_turn: dict[int, list[Finding]] = {}
    for part in trace.unread:
        if part.written is not None:
            name = f" of {part.written.name!r}" if part.written.name else ""
            message = f"the model wrote a call{name} into its text instead of making it"
            by_turn.setdefault(part.turn, []).append(Finding(CALL_IN_TEXT, message, part.path))
    return [(Subject(turn=turn), Scored(0.0, False, tuple(found))) for turn, found in by_turn.items()]


def read_written_calls(trace: Trace) -> Trace:
    """Return the trace with those of its calls in texts that are certain as steps without results; the others stay unread."""
    made: dict[int, Step] = {}
    for part in trace.unread:
        if (written := part.written) is not None and written.whole:
            message = trace.messages[written.message]
            call = ToolCall(None, written.name, written.arguments, dict(written.arguments or {}))
            made[id(part)] = Step(0, message.turn, call, None, written.message, None, message.agent)
    if not made:
        return trace
    steps = sorted([*trace.steps, *made.values()], key=lambda step: step.message)
    places = {id(step): index for index, step in enumerate(steps)}
    moved = [places[id(step)] for step in trace.steps]
    left = [part for part in trace.unread if id(part) not in made]
    unread = [part if part.step is None else replace(part, step=moved[part.step]) for part in left]
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


def _move_offers(offers: Mapping[str, Offer], moved: Sequence[int], count: int) -> dict[str, Offer]:
    """Return the offers with the steps before which they came, as numbered now."""
    return {
        name: offer._replace(step=moved[offer.step] if offer.step < len(moved) else count)
        for name, offer in offers.items()
    }

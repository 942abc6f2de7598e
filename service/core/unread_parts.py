"""What could not be read, and what is open because of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from service.core.checks import Part, Subject
from service.core.outcome import Finding, Skipped
from service.core.trace import UnreadablePart

T = TypeVar("T")

UNREAD_RESULT = "unread_result"
"""The code of the finding that names such a result."""


def build_unread_result(path: str, findings: tuple[Finding, ...] = ()) -> Skipped:
    """The outcome where fields of a result at this pointer had to be looked up, and it is in no form that has any."""
    reason = "the result is text or media, and no JSON in which its fields could be looked up"
    return Skipped("unread", reason, (*findings, Finding(UNREAD_RESULT, reason, path)))


def build_missing_result(path: str) -> Skipped:
    """The outcome of a text that follows a call whose result, at this pointer, the trace does not tell."""
    reason = "a text follows a call, and the trace does not tell what that call returned"
    return Skipped("not_captured", reason, (Finding("missing_result", reason, path),), open=True)


class CheckReach(NamedTuple):
    """What a check reach at of a trace, and whether it holds the trace against an expectation."""

    parts: frozenset[Part]
    expects: bool
    lists_calls: bool = False
    """Whether it reach which calls are right, and something says so: one call more would be looked at."""


def open_unread_outcomes(
    reach: CheckReach, outcomes: Sequence[tuple[Subject, T | Skipped]], unread: Iterable[UnreadablePart]
) -> Sequence[tuple[Subject, T | Skipped]]:
    """The outcomes of a check with those open that rest on a part that could not be read.

    A call that could not be read is one more step, whose outcome is open; and whatever is said of the trace or its turn as a
    whole (a call that is missing, too many calls, their order) may be due to it. A result leaves open all that is said of its
    step and of what follows. What does not apply whatever was called stays so.
    """
    parts = [part for part in unread if part.kind in reach.parts]
    calls = [(Subject(turn=part.turn), _build_unread(part)) for part in parts if part.kind == "call"]
    if reach.expects and all(_is_free(outcome) for _, outcome in outcomes):
        return [*outcomes, *calls] if reach.lists_calls else outcomes
    return [*_open_outcomes(reach, outcomes, parts), *calls]


def _open_outcomes(
    reach: CheckReach, outcomes: Sequence[tuple[Subject, T | Skipped]], parts: Sequence[UnreadablePart]
) -> Iterator[tuple[Subject, T | Skipped]]:
    lost = _index_parts(reach, parts)
    for subject, outcome in outcomes:
        part = None if reach.expects and _is_free(outcome) else lost.find(subject)
        yield subject, outcome if part is None else _build_unread(part)


def _build_unread(part: UnreadablePart) -> Skipped:
    return Skipped("unread", part.reason, (Finding(f"unread_{part.kind}", part.reason, part.path),))


def _is_free(outcome: object) -> bool:
    return isinstance(outcome, Skipped) and outcome.cause == "not_applicable"


class _LostParts(NamedTuple):
    """The first of the parts that leave open what is said of a step, of a turn, or of the trace."""

    any: UnreadablePart | None
    of_step: UnreadablePart | None
    """Of those that belong to a step the one of the first: it reaches that step and all later ones."""
    of_later_steps: UnreadablePart | None
    """Of those that belong to none the one of the first turn, where results are retold: it reaches the steps of later turns."""
    of_later_turns: UnreadablePart | None
    """That of the first turn of those that reach all turns after them."""
    of_turns: Mapping[int, UnreadablePart]
    """Those that reach their own turn alone."""

    def find(self, subject: Subject) -> UnreadablePart | None:
        """A part on which what is said of a subject rests; None where there is none."""
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
    retells = "result" in reach.parts
    lasting = [part for part in parts if retells and part.kind != "text"]
    return _LostParts(
        any=parts[0] if parts else None,
        of_step=min([part for part in parts if part.step is not None], key=lambda part: part.step or 0, default=None),
        of_later_steps=min([part for part in parts if retells and part.step is None], key=_get_turn, default=None),
        of_later_turns=min(lasting, key=_get_turn, default=None),
        of_turns={part.turn: part for part in reversed(parts) if not (retells and part.kind != "text")},
    )


def _get_turn(part: UnreadablePart) -> int:
    return part.turn

"""Failed tries: a call that failed and the later call of the same tool that repeats it are one expected call."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.core.alignment.assignment import Alignment, Pair
from service.core.expectations.expectation import CallPattern
from service.core.json.values import Contents
from service.core.trace import Step

if TYPE_CHECKING:
    from service.core.case import Case

MAX_RETRIES_SEEN = 64
"""Later calls of its tool with other arguments that are looked at for each failed call."""
MAX_OTHERS_COMPARED = 500
"""Later calls with other arguments that are compared with the expected ones, in one trace."""


def fold_tries(case: Case, alignment: Alignment) -> Alignment:
    """Take each failed try and its retry as one call: the retry stands for the expected call, and the try for none.

    A retry is a later call of the same tool, made when the result of the try was known, that worked and has the same or the
    right arguments. Where the results do not tell whether the try failed and the retry worked, the try is only possible. An
    expected call with an expected result keeps the call that has it.
    """
    steps = case.trace.steps
    known = [step for step in steps if step.result is not None]
    if case.matching.failed_tries == "count" or not (known or case.trace.unread):
        return alignment
    if len(known) == len(steps) and not case.trace.unread and all(_has_worked(step) for step in steps):
        return alignment
    named = {pair.step: pair for pair in alignment.pairs if _is_named(case, pair)}
    return alignment if len(named) == len(steps) else _Tries(case, alignment, named).build()


def _is_named(case: Case, pair: Pair) -> bool:
    return case.is_same_name(pair.pattern.tool, case.trace.steps[pair.step].call.name)


def _has_worked(step: Step) -> bool:
    return step.result is not None and not step.result.is_error and step.result.failure is None


class _Tries:
    def __init__(self, case: Case, alignment: Alignment, named: dict[int, Pair]) -> None:
        self.case = case
        self.alignment = alignment
        self.pairs = named
        """The pairs of one name, by step. All other steps are free, also those that stand in for another tool."""
        self.certain: dict[int, int] = {}
        self.possible: dict[int, int] = {}
        self.lost = {part.step for part in case.trace.unread if part.kind == "result"}
        """The steps whose result could not be read; None for a result of an unknown step."""
        contents = Contents()
        self.contents = [contents.number(step.call.arguments) for step in case.trace.steps]
        self.others_left = MAX_OTHERS_COMPARED
        self.candidates: defaultdict[str, list[int]] = defaultdict(list)
        """The calls of each tool that did not fail, so that they may be retries."""
        self.same: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
        """Those of them with the same arguments."""
        for step in case.trace.steps:
            if not step.failed:
                key = case.make_name_key(step.call.name)
                self.candidates[key].append(step.index)
                self.same[key, self.contents[step.index]].append(step.index)

    def build(self) -> Alignment:
        """Find all tries, and build the alignment without them."""
        steps = self.case.trace.steps
        tried = [step for step in steps if not self._has_worked(step)]
        for step in tried:
            if step.index in self.pairs and not self.pairs[step.index].pattern.says_result:
                self._move_pair(step, self.pairs[step.index])
        for step in tried:
            if step.index not in self.pairs:
                self._find_retry(step)
        moved = self.pairs.keys() | self.certain.keys() | self.possible.keys()
        stand_ins = [pair for pair in self.alignment.pairs if not _is_named(self.case, pair)]
        pairs = [*self.pairs.values(), *[pair for pair in stand_ins if pair.step not in moved]]
        counted = {pair.step for pair in pairs} | self.certain.keys()
        return Alignment(
            pairs=tuple(sorted(pairs, key=lambda pair: pair.expected)),
            missing=tuple(sorted({*self.alignment.missing, *[one.expected for one in stand_ins if one.step in moved]})),
            extra=tuple([step.index for step in steps if step.index not in counted]),
            unsettled=self.alignment.unsettled,
            tries=self.certain,
            possible_tries=self.possible,
        )

    def _move_pair(self, step: Step, pair: Pair) -> None:
        """Let a free retry stand for the expected call that this try was paired with."""
        expected = self.case.expected_calls[pair.expected]
        for retry, same in self._iter_retries(step):
            for path, pattern in [(pair.path, pair.pattern)] if same else expected.options:
                in_turn = retry.index not in self.pairs and expected.is_in_turn(pattern, retry.turn)
                if in_turn and (same or self._accepts(pattern, retry)):
                    del self.pairs[step.index]
                    self.pairs[retry.index] = Pair(pair.expected, retry.index, path, pattern)
                    return

    def _find_retry(self, step: Step) -> None:
        """Find the paired call that a free one is a try of."""
        for retry, same in self._iter_retries(step):
            pair = self.pairs.get(retry.index)
            if pair is not None and (same or self._accepts(pair.pattern, retry)):
                certain = step.failed and self._has_worked(retry)
                (self.certain if certain else self.possible)[step.index] = retry.index
                return

    def _has_worked(self, step: Step) -> bool:
        return _has_worked(step) and step.index not in self.lost

    def _iter_retries(self, step: Step) -> Iterator[tuple[Step, bool]]:
        """Yield the later calls that may be a retry, and whether the arguments are the same: those first.

        A call that lacks a required argument is not made right by making it again.
        """
        key, content = self.case.make_name_key(step.call.name), self.contents[step.index]
        same, any_later = self.same[key, content], self.candidates[key]
        schema = self.case.find_validator(step)
        is_whole = schema is None or schema.required <= (step.call.arguments or {}).keys()
        first = bisect_right(any_later, step.index)
        others = [j for j in any_later[first : first + MAX_RETRIES_SEEN] if self.contents[j] != content]
        for j in (*same[bisect_right(same, step.index) :], *others):
            retry, is_same = self.case.trace.steps[j], is_whole and self.contents[j] == content
            if retry.message > step.message and self._may_repeat(step, retry, same=is_same):
                yield retry, is_same

    def _may_repeat(self, step: Step, retry: Step, *, same: bool) -> bool:
        """Whether the results allow that the one call failed and the other worked.

        A result that the trace lacks says little: then the arguments must be the same, unless the result is known to be lost.
        """
        if step.result is not None or not self.lost.isdisjoint({step.index, None}):
            return True
        return same and retry.result is not None

    def _accepts(self, pattern: CallPattern, retry: Step) -> bool:
        self.others_left -= 1
        named = self.others_left >= 0 and self.case.is_same_name(pattern.tool, retry.call.name)
        return named and self.case.accepts(pattern, retry)

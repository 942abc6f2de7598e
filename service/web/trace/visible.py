"""Which parts of a long trace its page shows: all of a trace of usual length, else its start and what broke later."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from service.core.report import Report
from service.core.scores import Verdict
from service.core.trace import Trace

MAX_SHOWN = 1_000
"""Steps that are shown from the start, and as many later ones that did not pass; likewise texts and missing calls."""
QUIET: frozenset[Verdict] = frozenset({"pass", "not_applicable"})
_PART = re.compile(r"/(steps|messages)/(\d{1,7})(?:/|$)")


class VisibleParts(NamedTuple):
    """The parts that the page has a place for."""

    steps: frozenset[int]
    texts: frozenset[int]
    """Positions of messages."""

    def has(self, root: str) -> bool:
        """Whether the page shows what a pointer to a call's arguments, a result or a text leads to."""
        match = _PART.match(root)
        return match is None or int(match[2]) in (self.steps if match[1] == "steps" else self.texts)


def choose_visible(report: Report, trace: Trace | None, refuting: Collection[int]) -> VisibleParts:
    """Choose what to show of a trace. `refuting`: steps that contradict what was said; they count as broken too."""
    later = [
        one for one in report.steps[MAX_SHOWN:] if one.verdict not in QUIET or one.unexpected or one.index in refuting
    ]
    broken = sorted(later, key=lambda one: one.verdict != "fail")[:MAX_SHOWN]
    texts = [] if trace is None else [n for n, message in enumerate(trace.messages) if message.text]
    return VisibleParts(
        frozenset([one.index for one in [*report.steps[:MAX_SHOWN], *broken]]),
        frozenset([*texts[:MAX_SHOWN], *texts[-1:]]),
    )

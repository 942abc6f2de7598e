"""Which parts of a long trace its page shows: all of a trace of usual length, else the beginning and what broke further on."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from service.core.report import Report
from service.core.scores import Verdict
from service.core.trace import Trace

MAX_SHOWN = 1_000
"""Steps from the first one on that are shown; further on as many of those that did not pass. Likewise texts and missing calls."""
QUIET: frozenset[Verdict] = frozenset({"pass", "not_applicable"})
_PART = re.compile(r"/(steps|messages)/(\d{1,7})(?:/|$)")


class ShownParts(NamedTuple):
    """What the page has a place for."""

    steps: frozenset[int]
    texts: frozenset[int]
    """The numbers of messages."""

    def has(self, root: str) -> bool:
        """Whether it shows what the pointer of a call's arguments, of a result or of a text leads to."""
        found = _PART.match(root)
        return found is None or int(found[2]) in (self.steps if found[1] == "steps" else self.texts)


def choose_shown(report: Report, trace: Trace | None, refuting: Collection[int]) -> ShownParts:
    """What is shown of a trace. `refuting`: steps that contradict what was said, which broke too."""
    later = [
        one for one in report.steps[MAX_SHOWN:] if one.verdict not in QUIET or one.unexpected or one.index in refuting
    ]
    broke = sorted(later, key=lambda one: one.verdict != "fail")[:MAX_SHOWN]
    texts = [] if trace is None else [n for n, message in enumerate(trace.messages) if message.text]
    return ShownParts(
        frozenset([one.index for one in [*report.steps[:MAX_SHOWN], *broke]]),
        frozenset([*texts[:MAX_SHOWN], *texts[-1:]]),
    )

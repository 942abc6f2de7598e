"""Resolve pointers of findings and values to the part of the page that shows them, if it does, and to the value there."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.differences import covers
from service.core.report import Report
from service.core.results.structure import read_text
from service.core.scores import Verdict
from service.core.trace import Trace

_PLACE = re.compile(r"/steps/(\d{1,7})/(result/content|call/arguments)((?:[/@].*)?)", re.DOTALL)
_STEP = re.compile(r"/steps/(\d{1,7})(?:/(call|result)?.*)?", re.DOTALL)
_MESSAGE = re.compile(r"/messages/(\d{1,7})(?:/text(?:@(\d{1,9})-(\d{1,9}))?|/.*)?", re.DOTALL)
_PASSAGE = re.compile(r"@(\d{1,9})-(\d{1,9})((?:/.*)?)", re.DOTALL)
MAX_SHOWN = 1_000
"""Steps that are shown from the start, and as many later ones that did not pass; likewise texts and missing calls."""
QUIET: frozenset[Verdict] = frozenset({"pass", "not_applicable"})
_VISIBLE_PART = re.compile(r"/(steps|messages)/(\d{1,7})(?:/|$)")


class PagePlace(NamedTuple):
    """A place on the page: the root of what contains it, and the way from there."""

    root: str
    """The pointer of a call's arguments, a result's content or a message's text."""
    rest: str = ""
    """The pointer below the root, up to a text that contains the passage."""
    span: tuple[int, int] | None = None
    """The characters meant, in a text."""
    value: JsonValue = None
    """The value there, if `exists`."""
    exists: bool = False


def normalize_path(path: str, trace: Trace | None) -> str:
    """Return the pointer itself; for `/answer`, that of the last message."""
    if trace is not None and trace.messages and (path == "/answer" or path.startswith("/answer/")):
        return f"/messages/{len(trace.messages) - 1}/text"
    return path


def resolve_place(path: str, trace: Trace) -> PagePlace | None:
    """Find the place that a pointer leads to; None if the page shows none."""
    path = normalize_path(path, trace)
    if message := _MESSAGE.fullmatch(path):
        number = int(message[1])
        if number >= len(trace.messages) or not trace.messages[number].text:
            return None
        span = (int(message[2]), int(message[3])) if message[2] else None
        return PagePlace(f"/messages/{number}/text", "", span, trace.messages[number].text, True)
    match = _PLACE.fullmatch(path)
    if match is None or int(match[1]) >= len(trace.steps):
        return None
    step = trace.steps[int(match[1])]
    root = f"/steps/{match[1]}/{match[2]}"
    if match[2] == "call/arguments":
        content: JsonValue = None if step.call.arguments is None else dict(step.call.arguments)
    else:
        content = None if step.result is None else step.result.content
    return _walk(root, content, match[3])


def _walk(root: str, content: JsonValue, rest: str) -> PagePlace:
    """Follow a pointer token by token, into the first text that contains what it leads to."""
    here, at = content, ""
    while rest:
        if isinstance(here, str) and (passage := _PASSAGE.fullmatch(rest)):
            return _enter(root, at, here, passage)
        token, slash, after = rest[1:].partition("/")
        name, sign, span = token.partition("@")
        step = _look(here, token)
        if step is None and sign:  # a passage in the text of this member
            step, after = _look(here, name), f"@{span}{slash}{after}"
            token = name
        elif slash:
            after = f"/{after}"
        if step is None:
            return PagePlace(root, at)
        at, here, rest = f"{at}/{token}", step[0], after
    return PagePlace(root, at, None, here, True)


def _look(here: JsonValue, token: str) -> tuple[JsonValue] | None:
    name = token.replace("~1", "/").replace("~0", "~")
    if isinstance(here, dict) and name in here:
        return (here[name],)
    if isinstance(here, list) and name.isdecimal() and len(name) < 9 and int(name) < len(here):
        return (here[int(name)],)
    return None


def _enter(root: str, at: str, text: str, passage: re.Match[str]) -> PagePlace:
    """Enter the structure that a passage of a text spells."""
    start, end = int(passage[1]), min(int(passage[2]), len(text))
    found = next((one for one in read_text(text).passages if (one.start, one.end) == (start, end)), None)
    if found is None:
        return PagePlace(root, at, (start, end))
    inner = _walk(root, found.value, passage[3])
    if not inner.exists:
        return PagePlace(root, at)
    return PagePlace(root, at, _find_spelled(text, (start, end), inner), inner.value, True)


def _find_spelled(text: str, within: tuple[int, int], inner: PagePlace) -> tuple[int, int] | None:
    """Find a value in the stretch that spells it: after its key, else anywhere; None if it occurs there more than once."""
    key = inner.rest.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
    spelled = inner.value if isinstance(inner.value, str) else json.dumps(inner.value, ensure_ascii=False)
    for before in (rf'(?<!\w){re.escape(key)}"?\s*[:=]\s*"?', r"(?<!\w)"):
        pattern = re.compile(rf"{before}({re.escape(spelled)})(?!\w)")
        matches = list(pattern.finditer(text, *within)) if spelled else []
        if len(matches) == 1:
            return matches[0].span(1)
    return None


class VisibleParts(NamedTuple):
    """The parts that the page has a place for."""

    steps: frozenset[int]
    texts: frozenset[int]
    """Positions of messages."""

    def has(self, root: str) -> bool:
        """Whether the page shows what a pointer to a call's arguments, a result or a text leads to."""
        match = _VISIBLE_PART.match(root)
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


class PageParts(NamedTuple):
    """The parts of a page that can be linked to, because the page shows them."""

    prefix: str
    """Precedes every id."""
    steps: int
    visible: VisibleParts
    turns: frozenset[int]
    missing: frozenset[str]
    """Pointers of expected calls that were not made."""
    trace: Trace | None
    expected: bool
    """Whether the page shows the whole expectation."""

    def find_anchor(self, path: str) -> str:
        """Return the id of the part that shows what a pointer leads to; empty if none does."""
        part = self._find(normalize_path(path, self.trace))
        return f"{self.prefix}{part}" if part else ""

    def find_turn(self, turn: int) -> str:
        """Return the id of a turn; empty if nothing of it is shown."""
        return f"{self.prefix}turn-{turn}" if turn in self.turns else ""

    def _find(self, path: str) -> str:
        if step := find_step(path, self.steps):
            return f"step-{step - 1}" if step - 1 in self.visible.steps else ""
        if (number := self.find_message(path)) is not None:
            return f"text-{number}"
        if path.startswith("/state"):
            return "state" if self.trace is not None and has_final_state(self.trace) else ""
        if any(covers(one, path) for one in self.missing):
            return "missing"
        return "expected" if self.expected and path.startswith("/expected") else ""

    def find_message(self, path: str) -> int | None:
        """Return the position of the text that a pointer leads to; None if the page shows none."""
        match = _MESSAGE.fullmatch(normalize_path(path, self.trace))
        return int(match[1]) if match is not None and int(match[1]) in self.visible.texts else None


def find_step(path: str, steps: int) -> int:
    """Return the number, from 1, of the step that a pointer leads into; 0 if there is no such step."""
    match = _STEP.fullmatch(path)
    return int(match[1]) + 1 if match is not None and int(match[1]) < steps else 0


def has_final_state(trace: Trace) -> bool:
    """Whether the trace contains the final state."""
    return trace.state is not None and "final" in trace.state.captured

"""Resolve pointers of findings and values to the part of the page that shows them, if it does, and to the value there."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.differences import covers
from service.core.json.pointers import split_pointer
from service.core.report import Report
from service.core.results.structure import read_text
from service.core.scores import Verdict
from service.core.trace import Trace

_PLACE = re.compile(r"/steps/(\d{1,7})/(result/content|call/arguments)((?:[/@].*)?)", re.DOTALL)
_STEP = re.compile(r"/steps/(\d{1,7})(?:/(call|result)?.*)?", re.DOTALL)
_MESSAGE = re.compile(r"/messages/(\d{1,7})(?:/text(?:@(\d{1,9})-(\d{1,9}))?|/.*)?", re.DOTALL)
_PASSAGE = re.compile(r"@(\d{1,9})-(\d{1,9})((?:/.*)?)", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)
MAX_MARKED_CHARS = 400
"""Longest stretch without an inner structure, in characters, that is marked."""
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


def find_place(path: str, trace: Trace) -> PagePlace | None:
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
    passage_read = next((one for one in read_text(text).passages if (one.start, one.end) == (start, end)), None)
    if passage_read is None:
        return PagePlace(root, at, (start, end) if end - start <= MAX_MARKED_CHARS else None)
    inner = _walk(root, passage_read.value, passage[3])
    if not inner.exists:
        return PagePlace(root, at, (start, end) if end - start <= MAX_MARKED_CHARS else None)
    tokens = split_pointer(inner.rest)
    span = find_span(text, start, tokens) or _find_spelled(text, start, end, inner.value)
    return PagePlace(root, at, span, inner.value, True)


def find_span(text: str, at: int, tokens: tuple[str, ...]) -> tuple[int, int] | None:
    """Find, in a text that spells JSON from `at` on, the value that tokens lead to; None if it spells none.

    >>> text = 'got: {"a": [1, {"b": 25}]}'
    >>> start, end = find_span(text, 5, ("a", "1", "b"))
    >>> text[start:end]
    '25'
    """
    try:
        for token in tokens:
            at = _enter_member(text, _skip(text, at), token)
        at = _skip(text, at)
        return at, _DECODER.raw_decode(text, at)[1]
    except (ValueError, IndexError, RecursionError):
        return None


def _enter_member(text: str, at: int, token: str) -> int:
    """Find where the member or item of that name begins; ValueError or IndexError if there is none."""
    is_object, number = text[at] == "{", 0
    if not is_object and text[at] != "[":
        raise ValueError(token)
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        name = str(number)
        if is_object:
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # after the colon
        if name == token:
            return at
        at = _skip(text, _DECODER.raw_decode(text, at)[1])
        at = _skip(text, at + 1) if text[at] == "," else at
        number += 1
    raise ValueError(token)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return at if match is None else match.end()


def _find_spelled(text: str, start: int, end: int, value: JsonValue) -> tuple[int, int] | None:
    """Find the value in a stretch, if it occurs once; else return the stretch, if it is short."""
    spelled = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    matches = [] if not spelled else list(re.finditer(rf"(?<!\w){re.escape(spelled)}(?!\w)", text[start:end]))
    if len(matches) == 1:
        return start + matches[0].start(), start + matches[0].end()
    return (start, end) if end - start <= MAX_MARKED_CHARS else None


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

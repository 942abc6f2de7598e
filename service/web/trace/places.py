"""Pointers of findings and evidence: the part of the page that shows what they lead to, and what stands there."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.differences import covers
from service.core.json.pointers import split_pointer
from service.core.results.structure import read_text
from service.core.trace import Trace
from service.web.trace.shown import ShownParts

_PLACE = re.compile(r"/steps/(\d{1,7})/(result/content|call/arguments)((?:[/@].*)?)", re.DOTALL)
_STEP = re.compile(r"/steps/(\d{1,7})(?:/(call|result)?.*)?", re.DOTALL)
_MESSAGE = re.compile(r"/messages/(\d{1,7})(?:/.*)?", re.DOTALL)
_PASSAGE = re.compile(r"@(\d{1,9})-(\d{1,9})((?:/.*)?)", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)
MAX_SPELLED = 400
"""Characters of a place without an inner structure that are marked; of a longer one only that it is meant is said."""


class ShownPlace(NamedTuple):
    """A place that is shown: the root of what holds it, and the way from there."""

    root: str
    """The pointer of a call's arguments, of a result's content or of a message's text."""
    rest: str = ""
    """The pointer below the root, up to a text that a passage stands in."""
    span: tuple[int, int] | None = None
    """In a text: the characters meant."""
    value: JsonValue = None
    """What stands there, where `exists`."""
    exists: bool = False


def normalize_path(path: str, trace: Trace | None) -> str:
    """The pointer itself; that of the last message for `/answer`."""
    if trace is not None and trace.messages and (path == "/answer" or path.startswith("/answer/")):
        return f"/messages/{len(trace.messages) - 1}/text"
    return path


def find_place(path: str, trace: Trace) -> ShownPlace | None:
    """The place that a pointer of evidence leads to; None where the page shows none."""
    path = normalize_path(path, trace)
    if message := _MESSAGE.fullmatch(path):
        number = int(message[1])
        if number >= len(trace.messages) or not trace.messages[number].text:
            return None
        return ShownPlace(f"/messages/{number}/text", "", None, trace.messages[number].text, True)
    found = _PLACE.fullmatch(path)
    if found is None or int(found[1]) >= len(trace.steps):
        return None
    step = trace.steps[int(found[1])]
    root = f"/steps/{found[1]}/{found[2]}"
    if found[2] == "call/arguments":
        content: JsonValue = None if step.call.arguments is None else dict(step.call.arguments)
    else:
        content = None if step.result is None else step.result.content
    return _walk(root, content, found[3])


def _walk(root: str, content: JsonValue, rest: str) -> ShownPlace:
    """Follows a pointer token by token, into the first text that holds what it leads to."""
    here, at = content, ""
    while rest:
        if isinstance(here, str) and (passage := _PASSAGE.fullmatch(rest)):
            return _enter(root, at, here, passage)
        token, slash, after = rest[1:].partition("/")
        name, sign, span = token.partition("@")
        step = _look(here, token)
        if step is None and sign:  # a passage of the text at this member
            step, after = _look(here, name), f"@{span}{slash}{after}"
            token = name
        elif slash:
            after = f"/{after}"
        if step is None:
            return ShownPlace(root, at)
        at, here, rest = f"{at}/{token}", step[0], after
    return ShownPlace(root, at, None, here, True)


def _look(here: JsonValue, token: str) -> tuple[JsonValue] | None:
    name = token.replace("~1", "/").replace("~0", "~")
    if isinstance(here, dict) and name in here:
        return (here[name],)
    if isinstance(here, list) and name.isdecimal() and len(name) < 9 and int(name) < len(here):
        return (here[int(name)],)
    return None


def _enter(root: str, at: str, text: str, passage: re.Match[str]) -> ShownPlace:
    """A value in the structure that a passage of a text spells."""
    start, end = int(passage[1]), min(int(passage[2]), len(text))
    found = next((one for one in read_text(text).passages if (one.start, one.end) == (start, end)), None)
    if found is None:
        return ShownPlace(root, at, (start, end) if end - start <= MAX_SPELLED else None)
    inner = _walk(root, found.value, passage[3])
    if not inner.exists:
        return ShownPlace(root, at, (start, end) if end - start <= MAX_SPELLED else None)
    tokens = split_pointer(inner.rest)
    span = find_span(text, start, tokens) or _find_spelled(text, start, end, inner.value)
    return ShownPlace(root, at, span, inner.value, True)


def find_span(text: str, at: int, tokens: tuple[str, ...]) -> tuple[int, int] | None:
    """Where in a text that spells JSON from `at` on the value stands that tokens lead to; None where it spells none.

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
    """Where the member or item of that name begins; ValueError or IndexError where there is none."""
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
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


def _find_spelled(text: str, start: int, end: int, value: JsonValue) -> tuple[int, int] | None:
    """Where the value is spelt within a stretch, if it is so once; else the stretch, if it is short."""
    spelled = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    found = [] if not spelled else list(re.finditer(rf"(?<!\w){re.escape(spelled)}(?!\w)", text[start:end]))
    if len(found) == 1:
        return start + found[0].start(), start + found[0].end()
    return (start, end) if end - start <= MAX_SPELLED else None


class PageParts(NamedTuple):
    """The parts of a page that can be linked to: those that it shows."""

    prefix: str
    """What goes before every id."""
    steps: int
    shown: ShownParts
    turns: frozenset[int]
    missing: frozenset[str]
    """Pointers of expected calls that were not made."""
    trace: Trace | None
    expected: bool
    """Whether the page shows all that was expected."""

    def find_anchor(self, path: str) -> str:
        """The id of the part that shows what a pointer leads to; empty where none does."""
        found = self._find(normalize_path(path, self.trace))
        return f"{self.prefix}{found}" if found else ""

    def find_turn(self, turn: int) -> str:
        """The id of a turn; empty where nothing of it is shown."""
        return f"{self.prefix}turn-{turn}" if turn in self.turns else ""

    def _find(self, path: str) -> str:
        if step := find_step(path, self.steps):
            return f"step-{step - 1}" if step - 1 in self.shown.steps else ""
        if (number := self.find_message(path)) is not None:
            return f"text-{number}"
        if path.startswith("/state"):
            return "state" if self.trace is not None and has_final_state(self.trace) else ""
        if any(covers(one, path) for one in self.missing):
            return "missing"
        return "expected" if self.expected and path.startswith("/expected") else ""

    def find_message(self, path: str) -> int | None:
        """The number of the text that a pointer leads to; None where the page shows none."""
        found = _MESSAGE.fullmatch(normalize_path(path, self.trace))
        return int(found[1]) if found is not None and int(found[1]) in self.shown.texts else None


def find_step(path: str, steps: int) -> int:
    """The number, from 1, of the step that a pointer leads into; 0 where it leads into none of so many."""
    found = _STEP.fullmatch(path)
    return int(found[1]) + 1 if found is not None and int(found[1]) < steps else 0


def has_final_state(trace: Trace) -> bool:
    """Whether the trace tells the state afterwards."""
    return trace.state is not None and "final" in trace.state.captured

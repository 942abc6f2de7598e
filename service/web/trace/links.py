"""Link claims and arguments to what they rest on: which spans of the page light up together."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from service.core.json.values import format_value
from service.core.trace import Trace
from service.web.trace.evidence import EvidenceItem
from service.web.trace.marks import Mark, MarkedSpan, escape_invisible
from service.web.trace.places import PagePlace, find_place, normalize_path
from service.web.trace.visible import VisibleParts

SIGNS: Mapping[str, str] = {
    "supported": "borne out",
    "located": "found",
    "contradicted": "contradicted",
    "nowhere": "found nowhere",
    "suspected": "suspected",
    "unsupported": "not borne out",
    "not_checkable": "not checked by code",
    "open": "not found, which proves nothing",
}
"""The verdicts on claims and arguments, in words. Any other, which only a forged report has, gets no sign."""


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim of a text with what it rests on, or one argument with where it comes from."""

    text: str
    """The words, or the argument's name."""
    sign: str
    """One of SIGNS, or empty."""
    words: str
    """The sign in words."""
    anchor: str
    """The id of the span that makes the claim; empty if the page does not show it."""
    to: str = ""
    """The id of the field that it refers to."""
    links: str = ""
    number: int = 0
    source: str = ""
    """The field in words: its name and step, or the text that contains it."""
    value: str = ""
    """The value of the field, on one line."""
    note: str = ""


@dataclass(slots=True)
class RootMarks:
    """The marks of one text or JSON value, below its root."""

    spans: dict[str, list[MarkedSpan]] = field(default_factory=dict[str, list[MarkedSpan]])
    """Marked spans, by the pointer of a text below the root."""
    leaves: dict[str, Mark] = field(default_factory=dict[str, Mark])
    """Marks of whole values, by their pointer below the root."""


@dataclass(frozen=True, slots=True)
class Links:
    """Everything that lights up together on the page of a trace."""

    marks: Mapping[str, RootMarks]
    """By the pointer of what is shown as a whole: a text, arguments, a result."""
    claims: Mapping[str, Sequence[ClaimView]]
    """The claims of a text or the origins of a call's arguments, by pointer."""

    def find_marks(self, root: str) -> RootMarks | None:
        """Return the marks below a root; None if it has none."""
        return self.marks.get(root)

    def list_claims(self, root: str) -> Sequence[ClaimView]:
        """List the claims of a text, or the origins of a call's arguments."""
        return self.claims.get(root, ())


class _Field(NamedTuple):
    number: int
    anchor: str
    place: PagePlace | None


@dataclass(slots=True)
class LinkBuilder:
    """Collects the links of one trace. `prefix` precedes every id, so that traces can share a page."""

    trace: Trace
    prefix: str
    visible: VisibleParts
    marks: dict[str, RootMarks] = field(default_factory=dict[str, RootMarks])
    claims: dict[str, list[ClaimView]] = field(default_factory=dict[str, list[ClaimView]])
    _fields: dict[tuple[str, str, object], _Field] = field(default_factory=dict[tuple[str, str, object], _Field])
    _search_from: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _count: int = 0

    def add(self, item: EvidenceItem) -> None:
        """Add a claim or argument, unless the page does not show its place."""
        if not self.visible.has(normalize_path(item.path, self.trace)):
            return
        self._count += 1
        anchor = f"{self.prefix}claim-{self._count}"
        sign = item.sign if item.sign in SIGNS else ""
        source = self._find_source(item) if item.source else None
        number = source.number if source else 0
        links, to = (f"{self.prefix}{number}", source.anchor) if source else ("", "")
        mark = Mark(links, anchor, to, "", number, sign)
        root, is_placed = self._place_claim(item, mark)
        self.claims.setdefault(root, []).append(
            ClaimView(
                text=escape_invisible(item.text or _name_leaf(item.path)),
                sign=sign,
                words=SIGNS.get(sign, ""),
                anchor=anchor if is_placed else "",
                to=to,
                links=links,
                number=number,
                source=_describe_source(item.source, self.trace) if item.source else "",
                value=_spell_value(source.place) if source else "",
                note=escape_invisible(item.note or item.transform),
            )
        )

    def build(self) -> Links:
        """Return the collected links."""
        return Links(self.marks, self.claims)

    def _place_claim(self, item: EvidenceItem, mark: Mark) -> tuple[str, bool]:
        """Mark where a claim is made; return the root of the place, and whether it could be marked."""
        place = find_place(item.path, self.trace)
        if place is None or not place.exists:
            return normalize_path(item.path, self.trace) if place is None else place.root, False
        marks = self.marks.setdefault(place.root, RootMarks())
        if place.rest:
            joined_mark = marks.leaves[place.rest] = _join_marks(marks.leaves.get(place.rest), mark)
            return place.root, joined_mark.anchor == mark.anchor
        span = self._find_words(item, place.value) if isinstance(place.value, str) and item.text else None
        if span is not None:
            marks.spans.setdefault("", []).append(MarkedSpan(*span, mark))
        return place.root, span is not None

    def _find_words(self, item: EvidenceItem, text: str) -> tuple[int, int] | None:
        """Find the words of a claim. Without a position, claims are taken in the order of the text."""
        if item.start is not None:
            end = item.start + len(item.text)
            return (item.start, end) if text[item.start : end] == item.text else None
        at = text.find(item.text, self._search_from.get((item.path, ""), 0))
        if at < 0:
            return None
        self._search_from[item.path, ""] = at + len(item.text)
        return at, at + len(item.text)

    def _find_source(self, item: EvidenceItem) -> _Field | None:
        """Find the field that an item rests on, numbered on first use; None if the page does not show it."""
        place = find_place(item.source, self.trace)
        if place is None or not self.visible.has(place.root):
            return None
        span = place.span or self._find_argument(item, place)
        if not place.exists and span is None:
            return None
        key = (place.root, place.rest, span)
        if key not in self._fields:
            number = len(self._fields) + 1
            field_ = self._fields[key] = _Field(number, f"{self.prefix}field-{number}", place)
            self._mark_field(field_, span)
        return self._fields[key]

    def _find_argument(self, item: EvidenceItem, place: PagePlace) -> tuple[int, int] | None:
        """Find where a text contains the value of an argument verbatim."""
        if item.text or not isinstance(place.value, str):
            return None
        argument = find_place(item.path, self.trace)
        if argument is None or not isinstance(argument.value, str | int | float) or argument.value is True:
            return None
        spelled = argument.value if isinstance(argument.value, str) else json.dumps(argument.value)
        match = re.search(rf"(?<!\w){re.escape(spelled)}(?!\w)", place.value) if spelled else None
        return None if match is None else match.span()

    def _mark_field(self, field_: _Field, span: tuple[int, int] | None) -> None:
        place = field_.place
        if place is None:
            return
        marks = self.marks.setdefault(place.root, RootMarks())
        mark = Mark(f"{self.prefix}{field_.number}", "", "", field_.anchor, field_.number)
        if span is not None:
            marks.spans.setdefault(place.rest, []).append(MarkedSpan(*span, mark))
        else:
            marks.leaves[place.rest] = _join_marks(marks.leaves.get(place.rest), mark)


def _join_marks(one: Mark | None, other: Mark) -> Mark:
    """Join two marks: a value can be a claim, and also what others refer to."""
    if one is None:
        return other
    claim, target = (one, other) if one.anchor else (other, one)
    if not claim.anchor or target.anchor:
        return one
    links = " ".join(dict.fromkeys([*claim.links.split(), *target.links.split()]))
    return Mark(links, claim.anchor, claim.to, target.also, claim.number or target.number, claim.sign)


def _name_leaf(path: str) -> str:
    return path.rpartition("/")[2].replace("~1", "/").replace("~0", "~")


def _spell_value(place: PagePlace | None) -> str:
    return format_value(place.value, 120) if place is not None and place.exists else ""


def _describe_source(path: str, trace: Trace) -> str:
    """Describe a pointer in words: `amount_cents of step 1`."""
    parts = normalize_path(path, trace).split("/")
    kind, number, name = parts[1] if len(parts) > 1 else "", parts[2] if len(parts) > 2 else "", parts[-1]
    name = escape_invisible(_name_leaf(name))
    if kind == "steps" and number.isdecimal() and len(number) < 9:
        field = f"{name} of " if len(parts) > 5 else ""
        what = "the result" if len(parts) > 3 and parts[3] == "result" else "the call"
        return f"{field}{what} of step {int(number) + 1}"
    if kind == "messages" and number.isdecimal() and int(number[:8]) < len(trace.messages):
        role = trace.messages[int(number[:8])].role
        told = {"user": "what the user said", "system": "the instructions", "agent": "what another agent said"}
        return told.get(role, "what the assistant said")
    return escape_invisible(path)

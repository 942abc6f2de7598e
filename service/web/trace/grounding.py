"""Where each value of a trace comes from, as its page shows it: in a table, and as spans that light up together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError

from service.core.grounding.origins import Grounded, GroundedScore, GroundedSkip, Origin
from service.core.json.values import format_value
from service.core.judging.judged_outcomes import JudgedScore, OpenJudgement, UnsureJudgement
from service.core.report import Report, ReportOutcome
from service.core.trace import Trace
from service.web.trace.marks import Mark, MarkedSpan, escape_invisible
from service.web.trace.places import PagePlace, VisibleParts, normalize_path, resolve_place

ValueSign = Origin | Literal["wrong", "suspected", "own"]
"""own: given by the arguments of a call alone, which the model chose itself."""

WORDS: dict[ValueSign, str] = {
    "found": "found",
    "derived": "derived",
    "given": "given",
    "general": "general knowledge",
    "nowhere": "found nowhere",
    "not_looked_for": "not looked for",
    "wrong": "wrong",
    "suspected": "suspected",
    "own": "as in its own call",
}
MAX_PLACES = 3
"""Most sources, or nearest values, of one value that are shown."""
_SHOWN: TypeAdapter[tuple[Grounded, ...]] = TypeAdapter(tuple[Grounded, ...])


class SignedValue(NamedTuple):
    """A value with its origin. Its sign is the origin, or `wrong` or `suspected` where code has a finding against it."""

    grounded: Grounded
    sign: ValueSign


def list_values(report: Report) -> list[SignedValue]:
    """List the values of a report, each once; one with a finding takes precedence."""
    outcomes = [one.outcome for criterion in report.criteria for one in criterion.outcomes]
    outcomes += [outcome for step in report.steps for outcome in step.outcomes.values()]
    found: dict[tuple[str, int | None, str], SignedValue] = {}
    for outcome in outcomes:
        proved = isinstance(outcome, GroundedScore)
        for one in _read_grounding(outcome):
            key = one.pointer, one.start, one.value
            if key not in found or (one.code and not found[key].grounded.code):
                sure = proved and not (one.code or "").startswith("suspected")
                found[key] = SignedValue(one, _sign_origin(one) if not one.code else "wrong" if sure else "suspected")
    return list(found.values())


def _sign_origin(one: Grounded) -> ValueSign:
    own = one.origin == "given" and all("/call/arguments" in source for source in one.sources)
    return "own" if own else one.origin


def _read_grounding(outcome: ReportOutcome) -> Sequence[Grounded]:
    """Read the grounding of a check, or what a judge was shown of it: the same, without positions in texts."""
    if isinstance(outcome, GroundedScore | GroundedSkip):
        return outcome.grounding
    if isinstance(outcome, JudgedScore | OpenJudgement | UnsureJudgement) and outcome.evidence:
        try:
            return _SHOWN.validate_python(outcome.evidence)
        except ValidationError:  # a forged report
            return ()
    return ()


class PlaceView(NamedTuple):
    """A source of a value, or one of the held values that are nearest to it."""

    words: str
    """`amount_cents of the result of step 1`."""
    value: str
    """The value there, on one line; empty for a text."""
    to: str = ""
    """The id of the span; empty if the page does not show it."""
    number: int = 0
    """The number by which both light up."""


@dataclass(frozen=True, slots=True)
class ValueView:
    """A value of a text, or an argument, and where it comes from."""

    text: str
    """The value, or the argument's name."""
    sign: ValueSign
    words: str
    how: str
    """How it is derived."""
    places: tuple[PlaceView, ...]
    nearest: bool
    """Whether the places hold the nearest values, because none holds this one."""
    anchor: str
    """The id of its span; empty if the page does not mark it."""
    links: str


@dataclass(slots=True)
class RootMarks:
    """The marks of one text or JSON value, below its root."""

    spans: dict[str, list[MarkedSpan]] = field(default_factory=dict[str, list[MarkedSpan]])
    """Marked spans, by the pointer of a text below the root."""
    leaves: dict[str, Mark] = field(default_factory=dict[str, Mark])
    """Marks of whole values, by their pointer below the root."""

    def add(self, rest: str, span: tuple[int, int] | None, mark: Mark) -> Mark:
        """Add the mark of a span, or of a whole value; return it, joined with another of the same place."""
        if span is None:
            joined = self.leaves[rest] = _join_marks(self.leaves.get(rest), mark)
            return joined
        spans = self.spans.setdefault(rest, [])
        for n, one in enumerate(spans if mark.also else ()):
            if (one.start, one.end) == span:
                spans[n] = one._replace(mark=_join_marks(one.mark, mark))
                return spans[n].mark
        spans.append(MarkedSpan(*span, mark))
        return mark


class _Field(NamedTuple):
    number: int
    anchor: str
    value: str


@dataclass(slots=True)
class Links:
    """Everything that lights up together on the page of a trace. `prefix` precedes every id, so that traces can share a page."""

    trace: Trace | None
    prefix: str
    visible: VisibleParts
    marks: dict[str, RootMarks] = field(default_factory=dict[str, RootMarks])
    """By the pointer of what is shown as a whole: a text, arguments, a result."""
    values: dict[str, list[ValueView]] = field(default_factory=dict[str, list[ValueView]])
    """The values of a text, or of a call's arguments, by pointer."""
    _fields: dict[tuple[str, str, tuple[int, int] | None], _Field] = field(
        default_factory=dict[tuple[str, str, tuple[int, int] | None], _Field]
    )
    _search_from: dict[str, int] = field(default_factory=dict[str, int])
    _count: int = 0

    def add(self, one: Grounded, sign: ValueSign) -> None:
        """Add a value, unless the page does not show its place."""
        place = None if self.trace is None else resolve_place(one.pointer, self.trace)
        if place is None or not place.exists or not self.visible.has(place.root):
            return
        self._count += 1
        places = tuple(self._list_places(one))
        numbered = [found for found in places if found.number]
        links = " ".join(dict.fromkeys(f"{self.prefix}{found.number}" for found in numbered))
        to, number = (numbered[0].to, numbered[0].number) if numbered else ("", 0)
        mark = Mark(links, f"{self.prefix}value-{self._count}", to, "", number, sign)
        is_text = isinstance(place.value, str) and not place.rest
        span = self._find_mention(one, cast("str", place.value)) if is_text else None
        is_marked = False
        if span is not None or not is_text:
            marks = self.marks.setdefault(place.root, RootMarks())
            is_marked = marks.add(place.rest, span, mark).anchor == mark.anchor
        words = f"{WORDS[sign]}, {WORDS[one.origin]}" if sign == "suspected" else WORDS[sign]
        self.values.setdefault(place.root, []).append(
            ValueView(
                text=escape_invisible(one.value if is_text else _name_leaf(one.pointer)),
                sign=sign,
                words=words,
                how=escape_invisible(one.how or ""),
                places=places,
                nearest=not one.sources,
                anchor=mark.anchor if is_marked else "",
                links=links,
            )
        )

    def _find_mention(self, one: Grounded, text: str) -> tuple[int, int] | None:
        """Find a value in its text. Without a position, values are taken in the order of the text."""
        if one.start is not None and one.end is not None:
            return (one.start, one.end) if text[one.start : one.end] == one.value else None
        at = text.find(one.value, self._search_from.get(one.pointer, 0))
        if at < 0:
            return None
        self._search_from[one.pointer] = at + len(one.value)
        return at, at + len(one.value)

    def _list_places(self, one: Grounded) -> Iterator[PlaceView]:
        held = [(pointer, one.value, "") for pointer in one.sources]
        nearest = [(near.pointer, near.value, near.how or "") for near in one.nearest]
        for pointer, value, how in (held or nearest)[:MAX_PLACES]:
            words = ", ".join(filter(None, (escape_invisible(how), _describe_pointer(pointer, self.trace))))
            found = self._find_field(pointer, value)
            shown = escape_invisible(value) if not held else found.value if found else ""
            yield PlaceView(words, shown, found.anchor, found.number) if found else PlaceView(words, shown)

    def _find_field(self, pointer: str, value: str) -> _Field | None:
        """Find what a pointer leads to, numbered and marked on first use; None if the page does not show it."""
        place = None if self.trace is None else resolve_place(pointer, self.trace)
        if place is None or not self.visible.has(place.root):
            return None
        span = place.span or _find_words(place, value)
        if not place.exists and span is None:
            return None
        key = place.root, place.rest, span
        if key not in self._fields:
            number = len(self._fields) + 1
            held = "" if place.root.startswith("/messages") or not place.exists else format_value(place.value, 120)
            found = self._fields[key] = _Field(number, f"{self.prefix}field-{number}", escape_invisible(held))
            mark = Mark(f"{self.prefix}{number}", "", "", found.anchor, number)
            self.marks.setdefault(place.root, RootMarks()).add(place.rest, span, mark)
        return self._fields[key]


def _find_words(place: PagePlace, words: str) -> tuple[int, int] | None:
    """Find where a text has a value verbatim."""
    if not isinstance(place.value, str) or not words or place.value == words:
        return None
    match = re.search(rf"(?<!\w){re.escape(words)}(?!\w)", place.value)
    return None if match is None else match.span()


def _join_marks(one: Mark | None, other: Mark) -> Mark:
    """Join two marks: a value can itself be what others come from."""
    if one is None:
        return other
    value, source = (one, other) if one.anchor else (other, one)
    if not value.anchor or source.anchor:
        return one
    links = " ".join(dict.fromkeys([*value.links.split(), *source.links.split()]))
    return Mark(links, value.anchor, value.to, source.also, value.number or source.number, value.sign)


def _name_leaf(path: str) -> str:
    return path.rpartition("/")[2].replace("~1", "/").replace("~0", "~")


def _describe_pointer(path: str, trace: Trace | None) -> str:
    """Describe a pointer in words: `amount_cents of the result of step 1`."""
    parts = normalize_path(path, trace).split("/")
    kind, number = parts[1] if len(parts) > 1 else "", parts[2] if len(parts) > 2 else ""
    if kind == "tools":
        return "the description of the tool"
    if kind == "steps" and number.isdecimal() and len(number) < 9:
        name = f"{escape_invisible(_name_leaf(path))} of " if len(parts) > 5 else ""
        what = "the result" if parts[3:4] == ["result"] else "the call"
        return f"{name}{what} of step {int(number) + 1}"
    if kind == "messages" and number.isdecimal() and trace is not None and int(number[:8]) < len(trace.messages):
        role = trace.messages[int(number[:8])].role
        said = {"user": "what the user said", "system": "the instructions", "agent": "what another agent said"}
        return said.get(role, "what the assistant said")
    return escape_invisible(path)

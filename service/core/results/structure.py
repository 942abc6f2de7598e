"""The structure in what a tool returned: JSON in whatever wrapping, and what can be inferred from lines, tables and XML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.parsing import parse_or_none
from service.core.json.pointers import escape_token
from service.core.models.discovery import get_entry, import_all
from service.core.results import forms
from service.core.results.disowning import disowns
from service.core.results.form import Form, Stretch

MAX_TEXT_CHARS = 200_000
"""Characters of a text in which structure is looked for; a longer one is text."""
MAX_QUOTES = 3
"""So often JSON may be quoted within JSON."""

FORMS: tuple[Form, ...] = tuple(
    sorted([get_entry(module, "FORM") for module in import_all(forms)], key=lambda form: form.rank)
)
"""The forms, in the order in which they are looked for."""
_ANYWHERE = tuple([form for form in FORMS if form.anywhere])

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
"""The types of the parts of a result that are text."""
BODIES = ("result", "results", "output", "content", "text", "data", "response", "body")
"""Names of the member in which a wrapper has what the tool returned."""
_BODIES = frozenset(BODIES)
MAX_BESIDE = 4
"""Members of a wrapper besides."""
_DEPTH = 4


class Passage(NamedTuple):
    """A stretch of a text that has structure: characters `start` up to `end`, and what they spell."""

    form: str
    exact: bool
    """Whether it is JSON found whole, and no word beside it says that it is an example or the like: what it says can prove.

    What is inferred or disowned can only make suspect."""
    start: int
    end: int
    value: JsonValue


class Reading(NamedTuple):
    """What was found in a text: passages in order, and the text that is left beside them."""

    passages: tuple[Passage, ...]
    rest: str
    beside_exact: str
    """The text that is left beside the exact ones, so that what is inferred stands there as the text it is."""


class ParsedBody(NamedTuple):
    """A text that is what the tool returned, or a part of it, with its pointer in the result."""

    pointer: str
    text: str


def read_text(text: str) -> Reading:
    """The structure of a text that a tool returned.

    In time linear in the text; of more than 200,000 characters nothing is read. Two objects are two passages.

    >>> [(p.form, p.start, p.end, p.value) for p in read_text('It is {"balance": 120}.').passages]
    [('json_in_text', 6, 22, {'balance': 120})]
    >>> read_text("Note: the flight is late.").passages
    ()
    """
    return _read(text, FORMS)


def read_leaf(text: str) -> Reading:
    """The structure of any text within a JSON result: only what cannot well be anything else is looked for."""
    if not text[:1].isspace() and text[:1] not in '{["' and text.count("\n") < 3:
        return Reading((), text, text)
    return _read(text, _ANYWHERE)


@lru_cache(maxsize=64)
def _read(text: str, known: tuple[Form, ...], quotes: int = 0) -> Reading:
    if len(text) > MAX_TEXT_CHARS:
        return Reading((), text, text)
    inner = _unquote(text) if quotes < MAX_QUOTES else None
    if inner is not None:
        return _widen(_read(inner, known, quotes + 1), len(text))
    pieces = list(_split_fences(text))
    passages = [one for start, end, fenced in pieces for one in _find(text, start, end, known, fenced)]
    exact = [passage for passage in passages if passage.exact]
    beside = _cut(text, pieces, exact)
    if exact and disowns(beside, len(exact)):
        return Reading(tuple([one._replace(exact=False) for one in passages]), _cut(text, pieces, passages), text)
    return Reading(tuple(passages), _cut(text, pieces, passages), beside)


def _unquote(text: str) -> str | None:
    r"""What a text says that is a JSON string, such as `"{\"balance\": 120}"`; None where it is none."""
    bare = text.strip()
    value = parse_or_none(bare) if bare[:1] == bare[-1:] == '"' else None
    return value if isinstance(value, str) else None


def _widen(inner: Reading, end: int) -> Reading:
    """The reading of a quoted text, in the place of the whole."""
    places = [Passage("quoted_json" if one.exact else one.form, one.exact, 0, end, one.value) for one in inner.passages]
    return Reading(tuple(places), inner.rest, inner.beside_exact)


_FENCE = re.compile(r"(?m)^[ \t]{0,8}```[^`\n]{0,40}$")

Piece = tuple[int, int, bool]
"""From where to where a piece of a text goes, and whether it stands between fences."""


def _split_fences(text: str) -> Iterator[Piece]:
    """What stands before, between and after lines of three backticks; pieces that are blank are left out."""
    at, inside = 0, False
    for fence in _FENCE.finditer(text) if "```" in text else ():
        if not text[at : fence.start()].isspace() and at < fence.start():
            yield at, fence.start(), inside
        at, inside = fence.end(), not inside
    yield at, len(text), inside


def _find(text: str, start: int, end: int, known: Sequence[Form], fenced: bool) -> list[Passage]:  # noqa: FBT001
    """The passages of a piece; each form looks at what the ones before it left."""
    left: list[Gap] = [(start, end)]
    found: list[Passage] = []
    for form in known:
        more = [_place(form, one, a, fenced=fenced) for a, b in left for one in form.find(text[a:b])]
        if more:
            found = sorted([*found, *more], key=_get_start)
            left = [(a, b) for a, b in _list_gaps(start, end, found) if not text[a:b].isspace()]
    return found


Gap = tuple[int, int]


def _get_start(passage: Passage) -> int:
    return passage.start


def _place(form: Form, one: Stretch, at: int, *, fenced: bool) -> Passage:
    name = "fenced_json" if fenced and form.exact else form.name
    return Passage(name, form.exact, at + one.start, at + one.end, one.value)


def _list_gaps(start: int, end: int, found: Sequence[Passage]) -> list[Gap]:
    edges = [start, *[edge for passage in found for edge in passage[2:4]], end]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


def _cut(text: str, pieces: Sequence[Piece], passages: Sequence[Passage]) -> str:
    """What is left of a text without these passages and without fences."""
    edges = [edge for start, end, _ in pieces for edge in (start, end)]
    places = [place for passage in passages for place in (passage.start, passage.end)]
    bounds = sorted([*edges, *places])
    return "\n".join([text[a:b] for a, b in zip(bounds[::2], bounds[1::2], strict=True)])


def build_passage_pointer(pointer: str, passage: Passage) -> str:
    """The pointer of a passage of the text at `pointer`: `/steps/0/result/content@6-22`, characters from 0.

    What follows leads into what the passage spells: `/steps/0/result/content@6-22/balance`.
    """
    return f"{pointer}@{passage.start}-{passage.end}"


def drop_passage(pointer: str) -> str:
    """The pointer of the text in which a pointer finds a passage; itself, if it finds none.

    >>> drop_passage("/steps/0/result/content@6-22/balance"), drop_passage("/a@b/c")
    ('/steps/0/result/content', '/a@b/c')
    """
    place = _PASSAGE.search(pointer)
    return pointer[: place.start()] if place else pointer


_PASSAGE = re.compile(r"@[0-9]{1,9}-[0-9]{1,9}(?=/|$)")


def iter_bodies(content: JsonValue, pointer: str = "", depth: int = 0) -> Iterator[ParsedBody]:
    """The texts that are what the tool returned: the result itself, its parts that are text, the members of a wrapper.

    And those that are so in the JSON that such a text holds.
    """
    if isinstance(content, str):
        yield ParsedBody(pointer, content)
    for inner, place in _iter_inner(content, pointer) if depth < _DEPTH else ():
        yield from iter_bodies(inner, place, depth + 1)


def _iter_inner(content: JsonValue, pointer: str) -> Iterator[tuple[JsonValue, str]]:
    """What may be the body, or hold it, one level further in."""
    if isinstance(content, str):
        for passage in read_text(content).passages:
            yield passage.value, build_passage_pointer(pointer, passage)
    elif isinstance(content, list):
        for n, part in enumerate(content):
            if isinstance(part, dict) and part.get("type") in TEXT_PARTS and isinstance(part.get("text"), str):
                yield part["text"], f"{pointer}/{n}/text"
    elif isinstance(content, dict) and _is_wrapper(content):
        for name in BODIES:
            if name in content:
                yield content[name], f"{pointer}/{escape_token(name)}"


def _is_wrapper(content: dict[str, JsonValue]) -> bool:
    """Whether an object only wraps what a tool returned: little stands beside it, and nothing of any depth."""
    if _BODIES.isdisjoint(content):
        return False
    beside = [value for name, value in content.items() if name not in _BODIES]
    return len(beside) <= MAX_BESIDE and not any(map(_is_filled, beside))


def _is_filled(value: JsonValue) -> bool:
    return isinstance(value, dict | list) and bool(value)


class Structured(NamedTuple):
    """A result that is text, as the value that it spells: of several passages, an array of their values."""

    value: JsonValue
    exact: bool
    forms: tuple[str, ...]


def read_value(content: JsonValue) -> Structured | None:
    """What a text, or the text in a wrapper, spells; None where it spells nothing of structure."""
    passages = [passage for body in iter_bodies(content) for passage in read_text(body.text).passages]
    if not passages:
        return None
    values = [passage.value for passage in passages]
    forms = tuple(dict.fromkeys(passage.form for passage in passages))
    return Structured(values if values[1:] else values[0], all(passage.exact for passage in passages), forms)


def has_inferred(content: JsonValue) -> bool:
    """Whether a result has structure that is inferred, in its bodies or in any of its texts."""
    if any(not passage.exact for body in iter_bodies(content) for passage in read_text(body.text).passages):
        return True
    return any(not passage.exact for text in _iter_tables(content) for passage in read_leaf(text).passages)


def _iter_tables(content: JsonValue) -> Iterator[str]:
    """The texts in a JSON value that have lines enough for a table."""
    stack = [content]
    while stack:
        here = stack.pop()
        if isinstance(here, str):
            if here.count("\n") > 2:
                yield here
        elif isinstance(here, dict | list):
            stack += here.values() if isinstance(here, dict) else here


def list_forms(content: JsonValue) -> tuple[str, ...]:
    """In which forms a result was read, each once: `json`, the names of forms, `text`, `empty`, `other` (media and the like).

    >>> list_forms({"balance": 120}), list_forms('{"balance": 120}'), list_forms("It is 120."), list_forms(None)
    (('json',), ('json',), ('text',), ('empty',))
    >>> list_forms({"result": '{"balance": 120}'}), list_forms([{"type": "image"}])
    (('json',), ('other',))
    """
    if content is None or (isinstance(content, str) and not content.strip()):
        return ("empty",)
    outer = () if isinstance(content, str) or _is_parts(content) else ("json",)
    inner = [form for body in iter_bodies(content) for form in _list_body_forms(body)]
    return tuple(dict.fromkeys([*outer, *inner])) or ("other",)


def _list_body_forms(body: ParsedBody) -> Iterator[str]:
    reading = read_text(body.text)
    yield from [passage.form for passage in reading.passages]
    if reading.rest.strip():
        yield "text"


def _is_parts(content: JsonValue) -> bool:
    return isinstance(content, list) and all(isinstance(part, dict) and "type" in part for part in content)

"""Find the structure in what a tool returned: JSON in any wrapping, and what can be inferred from tables and lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.members import list_elements, read_type
from service.core.json.parsing import parse_or_none
from service.core.json.pointers import escape_token
from service.core.results.forms import FORMS, Form

MAX_TEXT_CHARS = 200_000
"""The longest text in which structure is searched for; a longer one is plain text."""
MAX_QUOTES = 3
"""How many times JSON may be quoted within JSON."""

_ANYWHERE = tuple([form for form in FORMS if form.anywhere])

TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
"""The types of the parts of a result that are text."""
BODIES = ("result", "results", "output", "content", "text", "data", "response", "body")
"""The names under which a wrapper holds what the tool returned."""
_BODIES = frozenset(BODIES)
MAX_OTHER_MEMBERS = 4
"""The most members that a wrapper may have besides."""
_MAX_DEPTH = 4


class Passage(NamedTuple):
    """A stretch of a text that has structure: characters `start` up to `end`, and the value that they spell."""

    form: str
    exact: bool
    """Whether it is JSON found whole, with no words around it that call it an example or the like: only then can it prove.

    An inferred or doubtful passage can only raise a suspicion."""
    start: int
    end: int
    value: JsonValue


class TextStructure(NamedTuple):
    """The structure found in a text: its passages in order, and the text around them."""

    passages: tuple[Passage, ...]
    rest: str
    """The text outside all passages."""
    beside_exact: str
    """The text outside the exact passages; inferred ones are part of it, as text."""


class ResultBody(NamedTuple):
    """A text that is what the tool returned, or a part of it, with its pointer in the result."""

    pointer: str
    text: str


def read_text(text: str) -> TextStructure:
    """Read the structure of a text that a tool returned.

    Takes time linear in the text; a text of more than 200,000 characters is not read. Two objects are two passages.

    >>> [(p.form, p.start, p.end, p.value) for p in read_text('It is {"balance": 120}.').passages]
    [('json_in_text', 6, 22, {'balance': 120})]
    >>> read_text("Note: the flight is late.").passages
    ()
    """
    return _read(text, FORMS)


def read_leaf(text: str) -> TextStructure:
    """Read the structure of any text within a JSON result, in the forms alone that are hard to mistake for anything else."""
    if not text[:1].isspace() and text[:1] not in '{["' and text.count("\n") < 3:
        return TextStructure((), text, text)
    return _read(text, _ANYWHERE)


@lru_cache(maxsize=64)
def _read(text: str, known_forms: tuple[Form, ...], quotes: int = 0) -> TextStructure:
    if len(text) > MAX_TEXT_CHARS:
        return TextStructure((), text, text)
    bare, size = text.strip(), len(text)
    quoted = parse_or_none(bare) if quotes < MAX_QUOTES and bare[:1] == bare[-1:] == '"' else None
    if isinstance(quoted, str):  # a JSON string: what it spells is stretched over the whole text
        inner = _read(quoted, known_forms, quotes + 1)
        named = [(one, "quoted_json" if one.exact else one.form) for one in inner.passages]
        return inner._replace(passages=tuple([one._replace(form=name, start=0, end=size) for one, name in named]))
    pieces = list(_split_fences(text))
    passages = [one for start, end, fenced in pieces for one in _find(text, start, end, known_forms, fenced)]
    exact = [passage for passage in passages if passage.exact]
    beside = _cut(text, pieces, exact)
    if exact and disowns(beside, len(exact)):
        return TextStructure(tuple([one._replace(exact=False) for one in passages]), _cut(text, pieces, passages), text)
    return TextStructure(tuple(passages), _cut(text, pieces, passages), beside)


_FENCE = re.compile(r"(?m)^[ \t]{0,8}```[^`\n]{0,40}$")

Piece = tuple[int, int, bool]
"""Where a piece of a text starts and ends, and whether it stands between fences."""


def _split_fences(text: str) -> Iterator[Piece]:
    """Yield the pieces before, between and after lines of three backticks, without blank ones."""
    start, inside = 0, False
    for fence in _FENCE.finditer(text) if "```" in text else ():
        if not text[start : fence.start()].isspace() and start < fence.start():
            yield start, fence.start(), inside
        start, inside = fence.end(), not inside
    yield start, len(text), inside


def _find(text: str, start: int, end: int, known_forms: Sequence[Form], fenced: bool) -> list[Passage]:  # noqa: FBT001
    """Find the passages of a piece; each form searches only what the forms before it left."""
    gaps: list[tuple[int, int]] = [(start, end)]
    found: list[Passage] = []
    for form in known_forms:
        name = "fenced_json" if fenced and form.exact else form.name
        stretches = [(a, one) for a, b in gaps for one in form.find(text[a:b])]
        more = [Passage(name, form.exact, a + one.start, a + one.end, one.value) for a, one in stretches]
        if more:
            found = sorted([*found, *more], key=lambda passage: passage.start)
            gaps = [(a, b) for a, b in _list_gaps(start, end, found) if not text[a:b].isspace()]
    return found


def _list_gaps(start: int, end: int, found: Sequence[Passage]) -> list[tuple[int, int]]:
    edges = [start, *[edge for passage in found for edge in passage[2:4]], end]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


def _cut(text: str, pieces: Sequence[Piece], passages: Sequence[Passage]) -> str:
    edges = [edge for start, end, _ in pieces for edge in (start, end)]
    places = [place for passage in passages for place in (passage.start, passage.end)]
    bounds = sorted([*edges, *places])
    return "\n".join([text[a:b] for a, b in zip(bounds[::2], bounds[1::2], strict=True)])


def build_passage_pointer(pointer: str, passage: Passage) -> str:
    """Build the pointer of a passage of the text at `pointer`: `/steps/0/result/content@6-22`, characters from 0.

    Tokens after it lead into the value that the passage spells: `/steps/0/result/content@6-22/balance`.
    """
    return f"{pointer}@{passage.start}-{passage.end}"


def iter_bodies(content: JsonValue, pointer: str = "", depth: int = 0) -> Iterator[ResultBody]:
    """Yield the texts that the tool returned: the result itself, its text parts, the members of a wrapper.

    JSON inside such a text is searched for bodies in the same way.
    """
    if isinstance(content, str):
        yield ResultBody(pointer, content)
    for inner, inner_pointer in _iter_inner(content, pointer) if depth < _MAX_DEPTH else ():
        yield from iter_bodies(inner, inner_pointer, depth + 1)


def _iter_inner(content: JsonValue, pointer: str) -> Iterator[tuple[JsonValue, str]]:
    """Yield what may be the body, or hold it, one level deeper, each with its pointer."""
    if isinstance(content, str):
        for passage in read_text(content).passages:
            yield passage.value, build_passage_pointer(pointer, passage)
    elif isinstance(content, list):
        for n, part in enumerate(content):
            if isinstance(part, dict) and read_type(part) in TEXT_PARTS and isinstance(part.get("text"), str):
                yield part["text"], f"{pointer}/{n}/text"
    elif isinstance(content, dict) and _is_wrapper(content):
        for name in BODIES:
            if name in content:
                yield content[name], f"{pointer}/{escape_token(name)}"


def _is_wrapper(content: dict[str, JsonValue]) -> bool:
    """Whether an object only wraps what a tool returned: it has few other members, and none of them is nested."""
    if _BODIES.isdisjoint(content):
        return False
    others = [value for name, value in content.items() if name not in _BODIES]
    return len(others) <= MAX_OTHER_MEMBERS and not any(isinstance(one, dict | list) and one for one in others)


class StructuredText(NamedTuple):
    """A result that is text, as the value that it spells: an array of the values if it has several passages."""

    value: JsonValue
    exact: bool
    forms: tuple[str, ...]


def read_value(content: JsonValue) -> StructuredText | None:
    """Read the value that a text, or the text in a wrapper, spells; None where it has no structure."""
    passages = [passage for body in iter_bodies(content) for passage in read_text(body.text).passages]
    if not passages:
        return None
    values = [passage.value for passage in passages]
    forms = tuple(dict.fromkeys(passage.form for passage in passages))
    return StructuredText(values if values[1:] else values[0], all(passage.exact for passage in passages), forms)


def list_forms(content: JsonValue) -> tuple[str, ...]:
    """List the forms in which a result was read: `json`, the names of forms, `text`, `empty`, `other` (such as media).

    >>> list_forms({"balance": 120}), list_forms('{"balance": 120}'), list_forms("It is 120."), list_forms(None)
    (('json',), ('json',), ('text',), ('empty',))
    >>> list_forms({"result": '{"balance": 120}'}), list_forms([{"type": "image"}])
    (('json',), ('other',))
    """
    if content is None or (isinstance(content, str) and not content.strip()):
        return ("empty",)
    in_parts = isinstance(content, list) and all(isinstance(part, dict) and "type" in part for part in content)
    forms = [] if in_parts or isinstance(content, str) else ["json"]
    for reading in [read_text(body.text) for body in iter_bodies(content)]:
        forms += [passage.form for passage in reading.passages]
        forms += ["text"] if reading.rest.strip() else []
    return tuple(dict.fromkeys(forms)) or ("other",)


MAX_WORDS = 40
"""The most words around the JSON of a text that pass for a label or a courtesy; a text with more is a document with examples."""
MAX_LABEL_WORDS = 12
"""The words allowed for each further passage."""

_WORD = re.compile(r"\w+")
_FOREIGN_LETTER = re.compile(r"[^\W\d_A-Za-z\u00c0-\u024f]")
"""A letter of a script whose words this module does not know."""
_DISOWNING_WORDS = re.compile(
    r"\b(?:ex[ae]mpl\w*|e\.? ?g\b|for instance|such as|like this|samples?|specimen|illustrat\w+|typical\w*|hypothetical\w*"
    r"|(?<!\bin )(?<!\bjson )formats?|schemas?|templates?|placeholders?|syntax|structure|shape|dummy|mock\w*|fake"
    r"|should|would|expect\w*|intended|not|never|no longer|instead|rather than|unlike"
    r"|old(?:er)?|former(?:ly)?|previous(?:ly)?|before|earlier|outdated|deprecated|obsolete|stale|wrong|incorrect|invalid"
    r"|requests?|inputs?|arguments?|parameters?"
    r"|beispiel\w*|z\. ?b\b|muster|vorlage|(?:an)?statt|nicht|kein\w*|alte?|bisher\w*|falsch\w*"
    r"|mod[eè]le|au lieu|ancien\w*|e[js]e?mpio\w*|ejemplo\w*|formato|voorbeeld\w*|przykład\w*)\b|n['\u2019]t\b",
    re.IGNORECASE,
)


def disowns(prose: str, passages: int) -> bool:
    """Whether the prose around a number of JSON passages casts doubt on their being what the tool returned.

    This module knows few words, so it errs on the side of doubt, which is cheap (a suspicion is still looked into), and long
    prose alone is enough.

    >>> disowns("Here is the result:", 1), disowns("Example of the format:", 1)
    (False, True)
    """
    if not prose.strip():
        return False
    is_long = len(_WORD.findall(prose)) > MAX_WORDS + MAX_LABEL_WORDS * (passages - 1)
    return is_long or bool(_FOREIGN_LETTER.search(prose) or _DISOWNING_WORDS.search(prose))


MEDIA = frozenset(
    {"image", "image_url", "input_image", "audio", "input_audio", "video", "file", "input_file", "document", "resource"}
)
"""The types of the parts of a result that code cannot read."""


def has_media(content: JsonValue) -> bool:
    """Whether a part of a result is neither JSON nor text.

    >>> has_media([{"type": "image", "data": "..."}]), has_media([{"type": "text", "text": "W77"}])
    (True, False)
    """
    parts = content.get("content") if isinstance(content, dict) else content
    return any(read_type(part) in MEDIA for part in list_elements(parts))
